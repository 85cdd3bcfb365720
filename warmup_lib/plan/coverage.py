"""Weighted maximum coverage inside one group of texts, in memory that its pairs can't blow up.

A group is what one stored answer may serve: texts of one tenant, context and guard signature. A
text covers its neighbours: those whose cosine with it reaches the serving threshold. Greedy takes
the text that covers the most uncovered heat until the budget is spent, which is never below
1 - 1/e (63 %) of the best possible set and is exact in its integer arithmetic.

No list of neighbours is kept, for a dense group would have n * n of them. One pass over all pairs
gives every text its first gain; from then on, when a choice covers new texts, their heat is taken
from the gains of their neighbours, which are found again. A text is covered once, so this is at
most a second pass. Both look at `TILE` * `TILE` pairs at a time: beside the vectors themselves,
memory is bounded by the tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

TILE = 2048
ROUNDING = 1e-6
"""A cosine this far below the threshold still reaches it: two copies of one float32 vector have
a cosine of 1 only up to rounding."""
_UNSURE = 1e-5
_NEVER = -(2**62)

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float32]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Group:
    """Texts that may serve each other. Rows are in the order that breaks ties.

    Attributes:
        vectors: (n, d), rows of length 1; a row of zeros has no neighbour but itself.
        heat: (n,) expected requests in millionths, not negative.
        choosable: (n,) may be warmed; the others are demand that a neighbour may serve.
        family: (n,) near duplicates share a number: at most one that serves the other is chosen.
    """

    vectors: Floats
    heat: Ints
    choosable: Mask
    family: Ints


@dataclass(frozen=True)
class Picks:
    """What greedy chose in one group.

    Attributes:
        rows: Chosen rows, best first.
        gains: Heat each one adds; never rises.
        texts: Texts each one adds, itself included.
        covered_by: (n,) position in `rows` of the first choice that covers a row, -1: none.
    """

    rows: Ints
    gains: Ints
    texts: Ints
    covered_by: Ints


def greedy(
    group: Group,
    threshold: float,
    accept: Callable[[int, int], bool],
    covered: Mask | None = None,
) -> Picks:
    """Choose rows by the uncovered heat they cover, largest first, earliest row on ties.

    Args:
        group: The texts.
        threshold: Cosine from which one text serves another.
        accept: Asked with (row, gain) before each choice; False ends the choosing.
        covered: Rows that something serves already; nobody gains by them.
    """
    done = np.zeros(len(group.heat), dtype=np.bool_) if covered is None else covered.copy()
    left = np.where(done, 0, group.heat)
    gain, degree = _first_gains(group.vectors, left, threshold)
    gain[~group.choosable] = _NEVER
    near = _Near(group.vectors, np.flatnonzero(degree), threshold)
    covered_by = np.full(len(done), -1, dtype=np.int64)
    rows: list[int] = []
    gains: list[int] = []
    texts: list[int] = []
    while len(gain):
        row = int(np.argmax(gain))
        best = int(gain[row])
        if best <= 0 or not accept(row, best):
            break
        served = near.of(row)
        new = served[~done[served]]
        covered_by[new] = len(rows)
        rows.append(row)
        gains.append(best)
        texts.append(len(new))
        done[new] = True
        for neighbours, heat in near.shares(new[left[new] > 0], left):
            np.subtract.at(gain, neighbours, heat)
        gain[row] = _NEVER
        gain[served[group.family[served] == group.family[row]]] = _NEVER
    return Picks(_ints(rows), _ints(gains), _ints(texts), covered_by)


def served_by(vectors: Floats, chosen: Ints, threshold: float) -> Mask:
    """Return which rows the chosen rows serve, themselves included.

    Args:
        vectors: (n, d), rows of length 1.
        chosen: Rows that are warm.
        threshold: Cosine from which one text serves another.
    """
    served = np.zeros(len(vectors), dtype=np.bool_)
    served[chosen] = True
    for rows in _tiles(len(chosen)):
        for block in _tiles(len(vectors), rows):
            _, found = _pairs(vectors[chosen[rows]], vectors[block], threshold)
            served[block.start + found] = True
    return served


class _Near:
    """Finds the neighbours of rows among the rows that have any (`linked`), and only those."""

    def __init__(self, vectors: Floats, linked: Ints, threshold: float) -> None:
        self._linked = linked
        self._vectors = vectors[linked]
        self._place = np.full(len(vectors), -1, dtype=np.int64)
        self._place[linked] = np.arange(len(linked))
        self._threshold = threshold

    def of(self, row: int) -> Ints:
        """Return the rows that `row` serves, itself included, in order."""
        place = self._place[row]
        if place < 0:
            return _ints([row])
        _, found = _pairs(self._vectors[[place]], self._vectors, self._threshold)
        return self._linked[found]

    def shares(self, rows: Ints, heat: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield (neighbour, heat of the row it is a neighbour of) over all pairs, by tile."""
        rows = rows[self._place[rows] >= 0]
        for part in _tiles(len(rows)):
            near = self._vectors[self._place[rows[part]]]
            for block in _tiles(len(self._linked), part):
                whose, found = _pairs(near, self._vectors[block], self._threshold)
                yield self._linked[block.start + found], heat[rows[part]][whose]


def _first_gains(vectors: Floats, heat: Ints, threshold: float) -> tuple[Ints, Ints]:
    """Return the heat that each row covers and its number of neighbours, itself excluded."""
    gain = heat.copy()
    degree = np.zeros(len(heat), dtype=np.int64)
    for a in _tiles(len(heat)):
        for b in _tiles(len(heat)):
            if b.start < a.start:
                continue
            left, right = _pairs(vectors[a], vectors[b], threshold)
            if a == b:
                left, right = left[left < right], right[left < right]
            left, right = left + a.start, right + b.start
            for one, other in ((left, right), (right, left)):
                np.add.at(gain, one, heat[other])
                np.add.at(degree, one, 1)
    return gain, degree


def _pairs(a: Floats, b: Floats, threshold: float) -> tuple[Ints, Ints]:
    """Return the (row of a, row of b) whose cosine reaches the threshold, in order.

    What float32 leaves in doubt is computed again in double precision, pair by pair, so that the
    shape of a block and the number of threads can't change the answer.
    """
    cosine = a @ b.T
    least = threshold - ROUNDING
    left, right = np.nonzero(cosine >= least - _UNSURE)
    unsure = np.flatnonzero(cosine[left, right] < least + _UNSURE)
    keep = np.ones(len(left), dtype=np.bool_)
    for part in _tiles(len(unsure)):
        pair = unsure[part]
        x, y = a[left[pair]].astype(np.float64), b[right[pair]].astype(np.float64)
        keep[pair] = np.einsum("ij,ij->i", x, y) >= least
    return left[keep], right[keep]


def _tiles(count: int, beside: slice | None = None) -> list[slice]:
    """Cut `count` rows into TILE at most; so many more as the few rows `beside` them allow."""
    step = TILE if beside is None else TILE * TILE // (beside.stop - beside.start)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)
