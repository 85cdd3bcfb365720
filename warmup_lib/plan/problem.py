"""What a choice under several budgets is made from, and what one is: all in whole numbers.

Every row costs something of each budget. A row may need another one, which is then paid for too,
once for all that need it: an adapter for a head, the blocks that several heads begin with. Rows
that are counted together, such as those of a tenant, have a floor and a cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints

Reals = np.ndarray[Any, np.dtype[np.float64]]

NO_CAP = 2**62


@dataclass(frozen=True)
class Groups:
    """Rows that are counted together; a row is in one group at most.

    Attributes:
        of: (n,) group of each row, -1: none.
        least: (g,) rows that are to be chosen of each group, as far as the budgets allow.
        most: (g,) rows that may be chosen of it, `NO_CAP`: any number.
    """

    of: Ints
    least: Ints
    most: Ints

    def count(self, rows: Mask | slice = slice(None)) -> Ints:
        """Return how many of some rows are in each group."""
        inside = self.of[rows]
        counted: Ints = np.bincount(inside[inside >= 0], minlength=len(self.least))
        return counted

    def first(self, rows: Mask, most: Ints, *order: Any) -> Ints:
        """Return the first of some rows in each group.

        Args:
            rows: They; those in no group are left out.
            most: (g,) how many of each group.
            order: Keys of n entries, the last one first; earlier rows go first on ties.
        """
        inside = np.flatnonzero(rows & (self.of >= 0))
        of = self.of[inside]
        sort = np.lexsort((*(key[inside] for key in order), of))
        starts = np.flatnonzero(np.diff(of[sort], prepend=-1))
        place = np.arange(len(sort)) - np.repeat(starts, np.diff(np.append(starts, len(sort))))
        return inside[sort][place < most[of[sort]]]


@dataclass(frozen=True)
class Problem:
    """Rows to choose from.

    Attributes:
        value: (n,) what a row is worth, not negative.
        cost: (m, n) what it takes of each budget, not negative.
        limit: (m,) the budgets.
        needs: (n,) row that has to be chosen too, -1: none.
        groups: Ways in which rows are counted.
    """

    value: Ints
    cost: Ints
    limit: Ints
    needs: Ints
    groups: Sequence[Groups] = field(default_factory=tuple)

    def used(self, chosen: Mask) -> Ints:
        """Return what a choice takes of each budget."""
        used: Ints = self.cost[:, chosen].sum(axis=1)
        return used

    def worth(self, chosen: Mask) -> int:
        """Return the value of a choice."""
        return int(self.value[chosen].sum())

    def allowed(self, chosen: Mask) -> bool:
        """Return whether a choice keeps to budgets and caps and holds what it needs."""
        needed = self.needs[chosen]
        return bool(
            (self.used(chosen) <= self.limit).all()
            and chosen[needed[needed >= 0]].all()
            and all((g.count(chosen) <= g.most).all() for g in self.groups)
        )

    def short(self, chosen: Mask) -> int:
        """Return by how many rows a choice stays below the floors."""
        return sum(int(np.maximum(g.least - g.count(chosen), 0).sum()) for g in self.groups)

    def relaxed(self, chosen: Mask) -> Problem:
        """Return the problem with no floor above what a choice reaches."""
        lower = [replace(g, least=np.minimum(g.least, g.count(chosen))) for g in self.groups]
        return replace(self, groups=tuple(lower))

    @cached_property
    def floored(self) -> Ints:
        """For how many floors each row counts."""
        counted: Ints = np.zeros(len(self.value), np.int64)
        for groups in self.groups:
            counted += np.append(groups.least > 0, False)[groups.of]
        return counted

    def upto_floors(self, value: Ints) -> Problem:
        """Return the problem with other values and with no more of a group than its floor."""
        lower = [
            replace(
                g,
                least=np.zeros_like(g.least),
                most=np.where(g.least > 0, np.minimum(g.least, g.most), g.most),
            )
            for g in self.groups
        ]
        return replace(self, value=value, groups=tuple(lower))

    def rest(self, fixed: Mask, free: Mask) -> Problem:
        """Return what is left to choose once some rows are chosen.

        Args:
            fixed: What is chosen.
            free: What may still be; what a row needs is fixed or free too.
        """
        place = np.append(np.where(free, np.cumsum(free) - 1, -1), -1)
        return Problem(
            self.value[free],
            self.cost[:, free],
            self.limit - self.used(fixed),
            place[self.needs[free]],
            tuple(_left(groups, fixed, free) for groups in self.groups),
        )

    @cached_property
    def depths(self) -> Sequence[Ints]:
        """The rows by how many others they need: first those that need one, then two, and so on."""
        depth = np.zeros(len(self.needs), np.int64)
        rows = np.flatnonzero(self.needs >= 0)
        while True:
            deeper = depth[self.needs[rows]] + 1
            if (deeper == depth[rows]).all():
                break
            depth[rows] = deeper
        return [np.flatnonzero(depth == n) for n in range(1, int(depth.max(initial=0)) + 1)]

    def whole(self, values: Any) -> Any:
        """Return the sum of a value over each row and all that it needs."""
        whole = values.copy()
        for rows in self.depths:
            whole[..., rows] += whole[..., self.needs[rows]]
        return whole

    def with_needs(self, rows: Mask) -> Mask:
        """Return some rows and all that they need."""
        closed = rows.copy()
        for level in reversed(self.depths):
            closed[self.needs[level[closed[level]]]] = True
        return closed

    @cached_property
    def usable(self) -> Mask:
        """Which rows fit the empty budgets together with all that they need."""
        whole = self.whole(self.cost)
        return np.asarray((whole <= self.limit[:, None]).all(axis=0), dtype=np.bool_)


@dataclass(frozen=True)
class Chosen:
    """A choice.

    Attributes:
        rows: (n,) what is chosen.
        value: What it is worth.
        bound: No choice that keeps as well to the floors is worth more.
        short: By how many rows it stays below the floors.
    """

    rows: Mask
    value: int
    bound: int
    short: int

    @property
    def gap(self) -> float:
        """Share of the bound that the choice may be short of the best one."""
        return 1 - self.value / self.bound if self.bound else 0.0


def _left(groups: Groups, fixed: Mask, free: Mask) -> Groups:
    count = groups.count(fixed)
    most = np.where(groups.most < NO_CAP, groups.most - count, NO_CAP)
    return Groups(groups.of[free], np.maximum(groups.least - count, 0), most)


def pruned(problem: Problem, chosen: Mask) -> Mask:
    """Return a choice without the rows that are worth nothing and that nothing chosen needs."""
    kept = chosen.copy()
    needed = np.zeros(len(kept), np.bool_)
    idle = kept & (problem.value == 0)
    for groups in problem.groups:
        idle &= groups.of < 0
    for rows in reversed(problem.depths):
        kept[rows] &= needed[rows] | ~idle[rows]
        held = rows[kept[rows]]
        needed[problem.needs[held]] = True
    roots = problem.needs < 0
    kept[roots] &= needed[roots] | ~idle[roots]
    return kept
