"""What is encoded, and what has no vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from warmup_lib.embed.encoder import Floats
from warmup_lib.embed.texts import check_vectors, encode_texts
from warmup_lib.errors import ConfigError


class Recorder:
    """An encoder of two dimensions that keeps what it was asked."""

    fingerprint = "f" * 16
    dimension = 2

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def reads_whole(self, texts: Sequence[str]) -> list[bool]:
        return [len(text) <= 8 for text in texts]

    def encode(self, texts: Sequence[str]) -> Floats:
        self.batches.append(list(texts))
        angle = np.array([len(text) + ord(text[0]) for text in texts], dtype=np.float32)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_canonical_texts_are_encoded_by_length_and_vectors_come_back_in_order() -> None:
    encoder = Recorder()
    texts = ["ccc  CCC", "\uff21", "  ", "bb", "far too long", "", "B"]
    seen: list[int] = []
    vectors, has = encode_texts(encoder, texts, 3, seen.append)
    assert encoder.batches == [["a"], ["b", "bb", "ccc ccc"], []]
    assert has.tolist() == [True, True, False, True, False, False, True]
    assert not vectors[~has].any()
    expected = encoder.encode(["ccc ccc", "a", "bb", "b"])
    np.testing.assert_array_equal(vectors[has], expected)
    assert seen == [0, 3, 6, 7]


def test_no_texts_are_no_vectors() -> None:
    vectors, has = encode_texts(Recorder(), [], 4)
    assert vectors.shape == (0, 2)
    assert has.shape == (0,)


def unit(rows: int) -> Floats:
    vectors = np.random.default_rng(1).normal(size=(rows, 4)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_sound_vectors_pass() -> None:
    check_vectors(unit(100))
    check_vectors(np.zeros((0, 4), np.float32))
    check_vectors(np.repeat(unit(1), 3, axis=0))


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.full((2, 4), np.nan, np.float32), "not numbers"),
        (unit(3) * np.float32(1.01), "length 1"),
        (np.zeros((1, 4), np.float32), "length 1"),
        (np.repeat(unit(1), 8, axis=0), "the same vector"),
    ],
)
def test_vectors_that_cannot_be_right_are_refused(vectors: Floats, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_vectors(vectors)
