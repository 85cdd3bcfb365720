"""The sketch saves work and never changes which texts are neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.plan import neighbours
from warmup_lib.plan.neighbours import ROUNDING, Neighbours


def texts(seed: int, count: int, dimension: int, spread: float) -> np.ndarray:
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(max(1, count // 8), dimension))
    vectors = centres[draw.integers(0, len(centres), count)]
    vectors = vectors + spread * draw.normal(size=vectors.shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def near(vectors: np.ndarray, threshold: float) -> np.ndarray:
    exact = vectors.astype(np.float64)
    found = exact @ exact.T >= threshold - ROUNDING
    np.fill_diagonal(found, True)
    return found


def found(index: Neighbours, rows: np.ndarray, count: int) -> np.ndarray:
    seen = np.zeros((len(rows), count), np.int64)
    for position, neighbour in index.of(rows):
        np.add.at(seen, (position, neighbour), 1)
    assert seen.max(initial=0) <= 1
    return seen.astype(np.bool_)


@pytest.mark.parametrize(("spread", "threshold"), [(0.3, 0.9), (0.3, 0.5), (0.01, 0.9), (2, 0.3)])
def test_sketch_finds_what_a_full_comparison_finds(spread: float, threshold: float) -> None:
    vectors = texts(3, 2 * neighbours.TILE + 100, 160, spread)
    count = len(vectors)
    heat = np.random.default_rng(0).integers(0, 10**9, count)
    index = Neighbours(vectors, threshold)
    truth = near(vectors, threshold)
    rows = np.arange(0, count, 37)

    assert (found(index, rows, count) == truth[rows]).all()
    assert (index.sums(heat) == truth.astype(np.int64) @ heat).all()
    assert (found(index, rows, count) == truth[rows]).all()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 50),
    threshold=st.sampled_from([0.3, 0.7, 0.9, 1.0]),
    tile=st.sampled_from([1, 4, 16]),
    sketch=st.sampled_from([1, 2, 4]),
)
def test_neither_tile_nor_sketch_changes_an_answer(
    seed: int, count: int, threshold: float, tile: int, sketch: int
) -> None:
    vectors = texts(seed, count, 8, 0.4)
    heat = np.random.default_rng(seed).integers(0, 10**9, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "TILE", tile)
        patch.setattr(neighbours, "_SKETCH", sketch)
        index = Neighbours(vectors, threshold)
        truth = near(vectors, threshold)
        assert (index.sums(heat) == truth.astype(np.int64) @ heat).all()
        assert (found(index, np.arange(count), count) == truth).all()


def test_sketch_is_never_below_the_vectors() -> None:
    vectors = texts(1, neighbours.TILE, 160, 0.5)
    sketch = neighbours._sketch(vectors)
    assert sketch.shape == (neighbours.TILE, 65)
    slack = sketch.astype(np.float64) @ sketch.T - vectors.astype(np.float64) @ vectors.T
    assert slack.min() > -1e-6


def test_zero_vector_has_no_neighbour_but_itself() -> None:
    index = Neighbours(np.zeros((3, 4), np.float32), 0.9)
    assert index.sums(np.array([1, 2, 3])).tolist() == [1, 2, 3]
    assert (found(index, np.arange(3), 3) == np.eye(3, dtype=bool)).all()
