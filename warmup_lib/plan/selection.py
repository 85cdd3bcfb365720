"""Choosing a layer's items under its budget: by coverage where similar prompts share, else by heat.

Heat covered in one group is never covered from another, so each group's greedy choices, whose
gains never rise, can be made apart and merged: the best of all of them are what one greedy over
everything would choose. Groups are taken by heat, and those with less than the worst choice so
far need not be looked at.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from warmup_lib.plan.coverage import Group, Mask, Picks, for_cost, greedy, served_by
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.points import Matrix, Points
from warmup_lib.stage import Progress

Least = float | np.ndarray[Any, np.dtype[np.float64]]
"""Cosine from which one prompt serves another: one for all, or (n,) one a row, equal in a group."""


@dataclass(frozen=True)
class Choice:
    """The items of one layer.

    Attributes:
        rows: Chosen rows of the candidates, best first.
        expected: Expected hits each one adds, in millionths a day.
        texts: Prompts each one adds, itself included.
        covered: Rows of the candidates that a chosen or a warm item serves, themselves included.
        by_log: Which of `rows` the log's own demand chose; None: all of them.
    """

    rows: Ints
    expected: Ints
    texts: Ints
    covered: Ints
    by_log: Mask | None = None

    @property
    def total(self) -> int:
        """Expected hits of all, in millionths a day."""
        return int(self.expected.sum())


def most_asked(heat: Ints, rank: Ints, held: Mask, limit: int, enough: int | None = None) -> Choice:
    """Choose the rows that are asked for the most, and at all.

    Args:
        heat: (n,) expected requests in millionths, which are the hits to expect.
        rank: (n,) breaks ties.
        held: (n,) warm already: not chosen.
        limit: Most rows to choose.
        enough: Stop once this many hits are expected, in millionths.
    """
    order = np.lexsort((rank, -heat))
    rows = order[(heat[order] > 0) & ~held[order]][:limit]
    rows = rows[: needed(heat[rows], enough)]
    return Choice(rows, heat[rows], np.ones(len(rows), np.int64), rows)


def most_covering(
    points: Points,
    vectors: Matrix,
    threshold: Least,
    limit: int,
    progress: Progress,
    *,
    held: Mask | None = None,
    served: Mask | None = None,
    enough: int | None = None,
    cost: Ints | None = None,
) -> Choice:
    """Choose the prompts whose answers serve the most heat together.

    Args:
        points: The layer's demand.
        vectors: Where its vectors are.
        threshold: Cosine from which one prompt serves another.
        limit: Most prompts to choose.
        progress: Told the groups done.
        held: Rows that are warm already: not chosen.
        served: Rows that those serve: nobody gains by them.
        enough: Stop once this many hits are expected, in millionths.
        cost: What each row takes of the budgets, `COST` or more; None: all take the same.
    """
    nothing = np.zeros(len(points.heat), dtype=np.bool_)
    served = nothing if served is None else served
    heat = np.where(served, 0, points.heat)
    free = (points.candidate >= 0) & ~(nothing if held is None else held)
    best = _Best(limit)
    found = [_alone(points, heat, free, best, cost)]
    for rows, matrix in points.groups(_worthwhile(points, heat, best, progress), vectors):
        if heat[rows].sum() < best.floor:
            continue
        of_rows = None if cost is None else cost[rows]
        group = Group(matrix, heat[rows], free[rows], points.family[rows], of_rows)
        picks = greedy(
            group, least_of(threshold, rows), best.among(points.rank[rows]), served[rows]
        )
        found.append(_Found(rows.start, picks))
    return _merged(points, found, served, limit, enough, cost)


def served_points(points: Points, vectors: Matrix, threshold: Least, held: Mask) -> Mask:
    """Return which rows the held rows serve, themselves included.

    Args:
        points: The layer's demand.
        vectors: Where its vectors are.
        threshold: Cosine from which one prompt serves another.
        held: Rows that are warm.
    """
    served = held.copy()
    with_held = points.shared(points.totals(held.astype(np.int64)))
    for rows, matrix in points.groups(with_held, vectors):
        served[rows] = served_by(matrix, np.flatnonzero(held[rows]), least_of(threshold, rows))
    return served


def least_of(threshold: Least, rows: slice) -> float:
    """Return the cosine from which the rows of one group serve each other."""
    return threshold if isinstance(threshold, float) else float(threshold[rows.start])


class _Best:
    """The gains for their cost of the best choices so far: below them, a group adds no more."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._heap: list[tuple[int, int]] = []

    @property
    def floor(self) -> int:
        """The gain below which nothing can be chosen any more."""
        if not self.limit:
            return sys.maxsize
        return self._heap[0][0] if len(self._heap) == self.limit else 1

    def accept(self, gain: int, rank: int) -> bool:
        """Take a choice if it is among the best so far; an earlier rank wins ties."""
        entry = (gain, -rank)
        if len(self._heap) < self.limit:
            heapq.heappush(self._heap, entry)
            return True
        return heapq.heappushpop(self._heap, entry) != entry

    def among(self, rank: Ints) -> Callable[[int, int], bool]:
        """Return what greedy asks about the rows of one group."""
        return lambda row, gain: self.accept(gain, int(rank[row]))


@dataclass(frozen=True)
class _Found:
    """What was picked in one group, whose rows begin at `start`."""

    start: int
    picks: Picks


def _alone(points: Points, heat: Ints, free: Mask, best: _Best, cost: Ints | None) -> _Found:
    """Pick among the rows that no other can serve; they are most, so all are taken at once."""
    worth = for_cost(heat, cost)
    rows = points.alone()
    rows = rows[free[rows] & (worth[rows] > 0)]
    rows = rows[np.lexsort((points.rank[rows], -worth[rows]))][: best.limit]
    for row in rows:
        best.accept(int(worth[row]), int(points.rank[row]))
    nobody_else = np.zeros(0, np.int64)
    return _Found(0, Picks(rows, heat[rows], np.ones(len(rows), np.int64), nobody_else))


def _worthwhile(points: Points, heat: Ints, best: _Best, progress: Progress) -> Iterator[int]:
    totals = points.totals(heat)
    order = points.shared(totals)
    for done, group in enumerate(order):
        progress("coverage", done, len(order))
        if totals[group] < best.floor:
            break
        yield int(group)
    progress("coverage", len(order), len(order))


def _merged(
    points: Points,
    found: list[_Found],
    served: Mask,
    limit: int,
    enough: int | None,
    cost: Ints | None,
) -> Choice:
    rows = np.concatenate([f.start + f.picks.rows for f in found])
    gains = np.concatenate([f.picks.gains for f in found])
    texts = np.concatenate([f.picks.texts for f in found])
    whose = np.repeat(np.arange(len(found)), [len(f.picks.rows) for f in found])
    worth = for_cost(gains, None if cost is None else cost[rows])
    order = np.lexsort((points.rank[rows], -worth))[:limit]
    order = order[: needed(gains[order], enough)]
    covered = served.copy()
    covered[rows[order]] = True
    # Gains for a cost never rise inside a group, so what is kept of its picks is the first of them.
    for f, kept in zip(found, np.bincount(whose[order], minlength=len(found)), strict=True):
        by = f.picks.covered_by
        covered[f.start : f.start + len(by)] |= (by >= 0) & (by < kept)
    candidate = points.candidate[covered]
    return Choice(
        points.candidate[rows[order]], gains[order], texts[order], candidate[candidate >= 0]
    )


def needed(gains: Ints, enough: int | None) -> int:
    """Return how many of the gains, best first, add up to enough; None: all of them."""
    if enough is None:
        return len(gains)
    if enough <= 0:
        return 0
    return int(np.searchsorted(np.cumsum(gains), enough)) + 1
