"""Grouping vectors by direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.cluster.kmeans import Floats, cluster_count, most_typical, spherical_kmeans


def at(*degrees: float) -> Floats:
    angles = np.radians(np.array(degrees))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def unit(rows: int, seed: int, dimension: int = 16) -> Floats:
    vectors = np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("texts", "most", "expected"),
    [(1, 24, 1), (2, 24, 1), (3, 24, 2), (100, 24, 10), (10_000, 24, 24), (100, 1, 1)],
)
def test_clusters_are_about_the_root_of_the_texts(texts: int, most: int, expected: int) -> None:
    assert cluster_count(texts, most) == expected


def test_two_directions_are_two_clusters_and_similarity_is_to_their_middle() -> None:
    vectors = at(0, 10, 90, 100)
    group, similarity = spherical_kmeans(vectors, np.ones(4, np.float32), 2, seed=1)
    assert group[0] == group[1] != group[2] == group[3]
    np.testing.assert_allclose(similarity, math.cos(math.radians(5)), atol=1e-6)


def test_a_heavy_text_pulls_the_centre_to_itself() -> None:
    weights = np.array([1_000_000, 1], np.float32)
    _, similarity = spherical_kmeans(at(0, 20), weights, 1, seed=1)
    np.testing.assert_allclose(similarity, [1.0, math.cos(math.radians(20))], atol=1e-5)


def test_as_many_clusters_as_texts() -> None:
    group, similarity = spherical_kmeans(at(0, 120, 240), np.ones(3, np.float32), 3, seed=1)
    assert sorted(group.tolist()) == [0, 1, 2]
    np.testing.assert_allclose(similarity, 1.0, atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(rows=st.integers(1, 400), seed=st.integers(0, 100))
def test_every_text_is_in_the_nearest_cluster_and_twice_is_the_same(rows: int, seed: int) -> None:
    vectors = unit(rows, seed)
    weights = np.random.default_rng(seed).uniform(0.001, 50, rows).astype(np.float32)
    clusters = cluster_count(rows, 24)
    group, similarity = spherical_kmeans(vectors, weights, clusters, seed)
    again, similarity_again = spherical_kmeans(vectors, weights, clusters, seed)
    assert group.tobytes() == again.tobytes()
    assert similarity.tobytes() == similarity_again.tobytes()
    assert group.shape == similarity.shape == (rows,)
    assert 0 <= group.min() <= group.max() < clusters
    assert -1.000001 <= similarity.min() <= similarity.max() <= 1.000001


def test_the_most_typical_is_the_nearest_to_all_by_weight() -> None:
    vectors = at(0, 10, 30, 90)
    assert most_typical(vectors, np.ones(4, np.float32)).argmax() == 2
    assert most_typical(vectors, np.array([9, 1, 1, 1], np.float32)).argmax() == 1
    by_hand = (1 + math.cos(math.radians(10)) + math.cos(math.radians(30)) + 0) / 4
    assert most_typical(vectors, np.ones(4, np.float32))[0] == pytest.approx(by_hand, abs=1e-6)
