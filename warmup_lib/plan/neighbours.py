"""Exact search for all pairs of texts that are similar enough, in memory that pairs can't blow up.

Most pairs are far apart, and a short sketch of each vector proves it: its coordinates along the
directions in which the texts differ most, and the length of what is left over. By Cauchy-Schwarz
the inner product of two sketches is never below that of the vectors, so that only pairs whose
sketches reach the threshold are looked at in full. On BANKING77 at 0.9 that is one pair in 1,800.
At most `TILE` * `TILE` pairs are held at a time a core; no list of neighbours is kept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

TILE = 2048
ROUNDING = 1e-6
"""A cosine this far below the threshold still reaches it: two copies of one float32 vector have
a cosine of 1 only up to rounding."""

_UNSURE = 1e-5  # float32 may be wrong by this much
_SKETCH = 64
_DENSE = 32  # a tile with more than one pair in so many left is multiplied in full

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float32]]


class Neighbours:
    """The texts of one group, and which of them are within the threshold of each other.

    What float32 leaves in doubt is computed again in double precision, pair by pair, so that the
    shape of a tile and the number of cores can't change an answer.

    Args:
        vectors: (n, d), rows of length 1; a row of zeros has no neighbour.
        threshold: Cosine from which two texts are neighbours.
    """

    def __init__(self, vectors: Floats, threshold: float) -> None:
        self._vectors = vectors
        self._least = threshold - ROUNDING
        self._search(np.arange(len(vectors)), _sketch(vectors))

    def sums(self, heat: Ints) -> Ints:
        """Return for each text the heat of itself and its neighbours.

        Afterwards texts without a neighbour are not searched any more.
        """
        gain = heat.copy()
        degree = np.zeros(len(heat), dtype=np.int64)
        tiles = _tiles(len(heat))
        lock = threading.Lock()

        def add(a: slice) -> None:
            for b in tiles[a.start // TILE :]:
                left, right = self._pairs(np.arange(a.start, a.stop), b)
                left += a.start
                if a == b:
                    once = left < right
                    left, right = left[once], right[once]
                with lock:  # whole numbers: the order in which tiles are added does not matter
                    for one, other in ((left, right), (right, left)):
                        np.add.at(gain, one, heat[other])
                        np.add.at(degree, one, 1)

        if len(tiles) > 1:
            with ThreadPoolExecutor(_cores()) as pool:
                list(pool.map(add, tiles))
        else:  # most groups are small: no threads for them
            list(map(add, tiles))
        linked = np.flatnonzero(degree)
        self._search(linked, self._sketch[linked])
        return gain

    def of(self, rows: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield (position in `rows`, neighbour) over all pairs; a row is its own neighbour."""
        place = self._place[rows]
        alone = np.flatnonzero(place < 0)
        yield alone, rows[alone]
        linked = np.flatnonzero(place >= 0)
        for part in _tiles(len(linked)):
            near = place[linked[part]]
            for block in _tiles(len(self._linked), len(near)):
                left, right = self._pairs(near, block)
                yield linked[part][left], self._linked[right]

    def _search(self, linked: Ints, sketch: Floats) -> None:
        self._linked = linked
        self._sketch = sketch
        self._place = np.full(len(self._vectors), -1, dtype=np.int64)
        self._place[linked] = np.arange(len(linked))

    def _pairs(self, a: Ints, b: slice) -> tuple[Ints, Ints]:
        """Return (index in `a`, place) of the neighbours among the places `a` and `b`, in order."""
        near = self._sketch[a] @ self._sketch[b].T >= self._least - _UNSURE
        left, right = np.nonzero(near)
        sure = np.zeros(len(left), dtype=np.bool_)
        if len(left) * _DENSE > near.size:
            cosine = self._vectors[self._linked[a]] @ self._vectors[self._linked[b]].T
            left, right = np.nonzero(cosine >= self._least - _UNSURE)
            sure = cosine[left, right] >= self._least + _UNSURE
        right += b.start
        unsure = np.flatnonzero(~sure)
        for part in _tiles(len(unsure)):
            pair = unsure[part]
            x = self._vectors[self._linked[a[left[pair]]]].astype(np.float64)
            y = self._vectors[self._linked[right[pair]]].astype(np.float64)
            sure[pair] = np.einsum("ij,ij->i", x, y) >= self._least
        return left[sure], right[sure]


def _sketch(vectors: Floats) -> Floats:
    """Return vectors whose inner products are never below those of `vectors`, and shorter."""
    count, dimension = vectors.shape
    if count < TILE or dimension < 2 * _SKETCH:
        return vectors
    directions = np.linalg.eigh(vectors.T @ vectors)[1][:, -_SKETCH:]
    along = vectors @ directions
    squares = [np.einsum("ij,ij->i", m, m, dtype=np.float64) for m in (vectors, along)]
    left_over = np.sqrt(np.maximum(squares[0] - squares[1], 0))
    return np.column_stack([along, left_over]).astype(np.float32)


def _tiles(count: int, beside: int = 0) -> list[slice]:
    """Cut `count` rows into TILE at most; so many more as the few rows `beside` them allow."""
    step = TILE * TILE // beside if beside else TILE
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
