"""Small real encoders and hand-made prompts for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.tables import PROMPTS

KEYS = Keys(b"a secret for the tests of embed")
WORDS = ("[UNK]", "card", "lost", "my", "refund", "weather", "when", "退款")
DIMENSION = 8


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that saves a real sentence-transformers model of 8 words."""

    def save(seed: int, name: str = "tiny", *, zero: bool = False) -> Path:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
        from tokenizers import Tokenizer
        from tokenizers.models import WordLevel
        from tokenizers.pre_tokenizers import Whitespace

        tokenizer = Tokenizer(WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token=WORDS[0]))
        tokenizer.pre_tokenizer = Whitespace()
        weights = np.random.default_rng(seed).normal(size=(len(WORDS), DIMENSION))
        if zero:
            weights[:] = weights[0]
        module = StaticEmbedding(tokenizer, embedding_weights=weights.astype(np.float32))
        folder = tmp_path_factory.mktemp("model") / name
        SentenceTransformer(modules=[module], device="cpu").save_pretrained(str(folder))
        return folder

    return save


@pytest.fixture(scope="session")
def store_prompts() -> Callable[..., Lake]:
    """Return a function that stores one day's prompts in the lake at a folder."""

    def store(root: Path, day: str, *texts: str | None) -> Lake:
        lake = Lake(str(root))
        rows = []
        for number, text in enumerate(texts):
            row: dict[str, Any] = dict.fromkeys(PROMPTS.schema.names)
            digest = KEYS.text_digest(text or "")
            row |= {"tenant": "acme", "model": "m", "response_digest": f"{number:032}"}
            rows.append(row | {"text_digest": digest, "text": text, "requests": 1})
        lake.replace("prompts", {"day": day}, pa.Table.from_pylist(rows, schema=PROMPTS.schema))
        return lake

    return store


@pytest.fixture(scope="session")
def text_digest() -> Callable[[str], str]:
    """Return the function from a text to its digest."""
    return KEYS.text_digest
