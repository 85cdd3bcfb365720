"""Spherical k-means over weighted vectors, the same on every run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

_ITERATIONS = 25
_STARTS = 5  # the best of so many: one start often leaves two groups under one centre
_POINTS_PER_CENTRE = 1024


def cluster_count(texts: int, most: int) -> int:
    """Return how many clusters to make: about the square root of the texts, at most `most`."""
    return max(1, min(most, round(math.sqrt(texts))))


def spherical_kmeans(
    vectors: Floats, weights: Floats, clusters: int, seed: int
) -> tuple[Ints, Floats]:
    """Group vectors by direction so that heavy ones lie close to their centre.

    One thread and a fixed seed: sums are taken in one order, so the result is the same each time.
    Memory: the vectors; at most 1,024 of them a cluster are used to find the centres.

    Args:
        vectors: float32 (n, d), rows of length 1, n >= 1.
        weights: (n,) above zero.
        clusters: At most n.
        seed: Choice of the first centres.

    Returns:
        The cluster of each row, and the cosine of each row with its cluster's centre, rounded to
        six digits.
    """
    import faiss
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        kmeans = faiss.Kmeans(
            vectors.shape[1],
            clusters,
            niter=_ITERATIONS,
            nredo=_STARTS,
            seed=seed,
            spherical=True,
            min_points_per_centroid=1,
            max_points_per_centroid=_POINTS_PER_CENTRE,
        )
        kmeans.train(vectors, weights=np.ascontiguousarray(weights, dtype=np.float32))
        similarity, nearest = kmeans.index.search(vectors, 1)
    return nearest[:, 0].astype(np.int64), np.round(similarity[:, 0], 6)


def most_typical(vectors: Floats, weights: Floats) -> Floats:
    """Return how central each row is: its mean cosine with all rows, weighted, to six digits."""
    mean = np.einsum("n,nd->d", weights / weights.sum(), vectors)
    central: Floats = np.einsum("nd,d->n", vectors, mean)
    return central.round(6)
