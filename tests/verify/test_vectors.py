"""A later text is encoded once, and only where the lake does not know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warmup_lib.verify.vectors import WindowVectors


class Known:
    """One known text, and a note of what was asked."""

    encoder = "e"
    dimension = 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, digests: Sequence[str]) -> Mapping[str, Any]:
        self.asked += digests
        return {d: np.array([1, 0], np.float32) for d in digests if d == "known"}


def test_texts_are_looked_up_and_encoded_once() -> None:
    encoded: list[str] = []

    def encode(texts: Sequence[str]) -> Any:
        encoded.extend(texts)
        there = np.array([bool(text) for text in texts])
        return np.tile(np.array([0, 1], np.float32), (len(texts), 1)), there

    known = Known()
    vectors = WindowVectors(known, encode)
    texts = {"known": "old question", "new": "new question", "blank": ""}
    for _ in range(2):
        found = vectors.of(texts)
        assert {d: v.tolist() for d, v in found.items()} == {"known": [1, 0], "new": [0, 1]}
    assert encoded == ["", "new question"]
    assert sorted(known.asked) == ["blank", "known", "new"]
    assert vectors.encoded == 2
