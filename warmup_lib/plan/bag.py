"""Filling budgets greedily: what is worth most for its price first, with what it needs.

What several rows need is paid for once, so that what else needs it gets cheaper as the bag fills:
the order is found anew each time that many rows were looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.prices import Prices, start
from warmup_lib.plan.problem import Problem

AT_ONCE = 65_536
"""Rows looked at one by one before those that can't fit any more are put aside again."""


class Worth:
    """What rows are worth for their price.

    Attributes:
        value: (n,) value of each row, with what floors pay for it.
        price: (n,) above 0.
    """

    def __init__(self, problem: Problem, prices: Prices) -> None:
        paid = Prices(np.zeros_like(prices.budgets), [np.minimum(p, 0) for p in prices.groups])
        asked = Prices(prices.budgets, [np.maximum(p, 0) for p in prices.groups])
        self.value = problem.value - paid.of(problem)
        price = asked.of(problem)
        # What takes nothing that is scarce goes first, cheap things before dear ones.
        tiny = start(problem).of(problem)
        self.price = price + tiny * (1e-9 * max(1.0, float(problem.value.max(initial=0))))
        self.price += 1e-12


class Bag:
    """What is chosen so far, and what is left of budgets and caps."""

    def __init__(self, problem: Problem, held: Mask | None = None) -> None:
        self._problem = problem
        self.held = np.zeros(len(problem.value), np.bool_) if held is None else held.copy()
        self._left: list[int] = (problem.limit - problem.used(self.held)).tolist()
        counts = [groups.count(self.held) for groups in problem.groups]
        both = list(zip(problem.groups, counts, strict=True))
        self._barred = np.zeros(len(self.held), np.bool_)
        self._room: list[list[int]] = [(g.most - count).tolist() for g, count in both]
        self._lack: list[list[int]] = [(g.least - count).tolist() for g, count in both]

    def fill(self, worth: Worth, *, floors: bool = False) -> None:
        """Add what is worth most for its price until nothing fits any more.

        Args:
            worth: Tells the order; earlier rows go first on ties.
            floors: Add only rows of groups that are below their floor.
        """
        while len(rows := self._next(worth, floors=floors)):
            of = [groups.of[rows].tolist() for groups in self._problem.groups]
            each = zip(rows.tolist(), self._problem.cost[:, rows].T.tolist(), *of, strict=True)
            for row, cost, *counted in each:
                if not floors or any(
                    self._lacks(kind, group) for kind, group in enumerate(counted)
                ):
                    self._add(row, cost, counted)

    def _next(self, worth: Worth, *, floors: bool) -> Ints:
        """Return rows that fit, best first, each with what it lacks."""
        problem = self._problem
        free = problem.usable & ~self.held & ~self._barred
        free &= (
            self._whose([np.array(lack) > 0 for lack in self._lack], any_of=True)
            if floors
            else problem.value > 0
        )
        free &= self._whose([np.array(room) > 0 for room in self._room], any_of=False)
        for column, left in zip(problem.cost, self._left, strict=True):
            free &= self._together(column) <= left
        rows = np.flatnonzero(free)
        ratio = self._together(worth.value)[rows] / self._together(worth.price)[rows]
        return rows[np.argsort(-ratio, kind="stable")][:AT_ONCE]

    def _whose(self, marks: Sequence[Mask], *, any_of: bool) -> Mask:
        """Return the rows of which any group, or every group, is marked."""
        found = np.full(len(self.held), not any_of)
        for groups, mark in zip(self._problem.groups, marks, strict=True):
            of_row = np.append(mark, not any_of)[groups.of]
            found = found | of_row if any_of else found & of_row
        return found

    def _together(self, column: Any) -> Any:
        """Return the sum over each row and the rows that it needs and that are not held."""
        if not self._problem.depths:
            return column
        whole = np.where(self.held, 0, column)
        for rows in self._problem.depths:
            whole[rows] += whole[self._problem.needs[rows]]
        return whole

    def _lacks(self, kind: int, group: int) -> bool:
        return group >= 0 and self._lack[kind][group] > 0

    def _add(self, row: int, cost: Sequence[int], counted: Sequence[int]) -> None:
        """Add a row with what it needs, if all of it fits."""
        chain = [row]
        while (above := int(self._problem.needs[chain[-1]])) >= 0 and not self.held[above]:
            chain.append(above)
        if self.held[row]:
            return
        places = [(kind, group) for kind, group in enumerate(counted) if group >= 0]
        if len(chain) > 1:
            cost = self._problem.cost[:, chain].sum(axis=1).tolist()
            for kind, groups in enumerate(self._problem.groups):
                places += [(kind, g) for g in groups.of[chain[1:]].tolist() if g >= 0]
        if any(c > left for c, left in zip(cost, self._left, strict=True)):
            return
        if any(self._room[kind][g] < n for (kind, g), n in Counter(places).items()):
            self._barred[row] = True  # what it needs is beyond a cap, which only gets tighter
            return
        self.held[chain] = True
        self._left = [left - c for c, left in zip(cost, self._left, strict=True)]
        for kind, group in places:
            self._room[kind][group] -= 1
            self._lack[kind][group] -= 1
