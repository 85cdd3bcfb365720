"""Reading vectors back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from warmup_lib.embed.encoder import Floats
from warmup_lib.embed.vectors import LakeVectors, vector_column
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake

ONE, TWO = "1" * 16, "2" * 16


def store(lake: Lake, encoder: str, day: str, rows: dict[str, list[float]], part: int = 1) -> None:
    for start in range(0, len(rows), part):
        some = dict(list(rows.items())[start : start + part])
        vectors = np.array(list(some.values()), np.float32)
        table = pa.table({"text_digest": list(some), "vector": vector_column(vectors)})
        meta = {"dimension": vectors.shape[1]}
        lake.append("vectors", {"encoder": encoder, "day": day}, table, meta)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path))
    store(lake, ONE, "2026-03-13", {"a": [1, 0], "b": [0, 1], "c": [-1, 0]})
    store(lake, ONE, "2026-03-14", {"d": [0, -1]})
    store(lake, TWO, "2026-03-13", {"a": [0.6, 0.8], "e": [0.8, 0.6]}, part=5)
    return lake


def as_lists(found: dict[str, Floats]) -> dict[str, list[float]]:
    return {digest: vector.tolist() for digest, vector in found.items()}


def test_vectors_come_from_all_days_and_unknown_texts_are_absent(lake: Lake) -> None:
    vectors = LakeVectors(lake, ONE)
    assert (vectors.encoder, vectors.dimension) == (ONE, 2)
    assert as_lists(vectors.get(["d", "x", "c", "a"])) == {
        "d": [0, -1],
        "c": [-1, 0],
        "a": [1, 0],
    }
    assert vectors.get([]) == {}


def test_a_matrix_keeps_the_order_and_repeats_and_has_zeros_for_what_is_absent(lake: Lake) -> None:
    rows = LakeVectors(lake, ONE).matrix(["d", "x", "a", "d"])
    assert rows.dtype == np.float32
    assert rows.tolist() == [[0, -1], [0, 0], [1, 0], [0, -1]]


def test_no_vector_is_read_under_another_encoder_of_the_same_dimension(lake: Lake) -> None:
    one, two = LakeVectors(lake, ONE), LakeVectors(lake, TWO)
    assert one.dimension == two.dimension
    everything = ["a", "b", "c", "d", "e"]
    assert set(one.get(everything)) == {"a", "b", "c", "d"}
    assert as_lists(two.get(everything)) == {
        "a": [np.float32(0.6), np.float32(0.8)],
        "e": [np.float32(0.8), np.float32(0.6)],
    }


def test_only_days_that_hold_a_wanted_text_are_read(lake: Lake, tmp_path: Path) -> None:
    vectors = LakeVectors(lake, ONE)
    vectors.get(["d"])
    for part in (tmp_path / "vectors" / f"encoder={ONE}" / "day=2026-03-13").glob("*.parquet"):
        part.unlink()
    assert as_lists(vectors.get(["d"])) == {"d": [0, -1]}
    with pytest.raises(FileNotFoundError):
        vectors.get(["a"])


def test_an_encoder_without_vectors_finds_nothing_and_says_what_to_do(lake: Lake) -> None:
    vectors = LakeVectors(lake, "3" * 16)
    assert vectors.get(["a"]) == {}
    with pytest.raises(InputDataError, match="run `embed`"):
        _ = vectors.dimension
