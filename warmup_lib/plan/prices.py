"""What each budget is worth: prices under which choosing by profit alone spends no more than it.

With a price for every budget, cap and floor, each row is judged alone: it is chosen where its value
is above what it costs, together with what it needs (Lagrange). Whatever the prices, that profit
and the price of the budgets bound the value of every allowed choice; the prices are searched that
make the bound least (subgradient steps of Polyak's length).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.problem import NO_CAP, Groups, Problem, Reals

_AIM = 0.25
"""The first steps are as long as if the bound could fall by this share."""

_PATIENCE = 6
"""Steps without a gain after which the search goes on from the best prices and aims half as low."""

_GAIN = 1e-5
"""A smaller share of the bound is no gain."""


@dataclass(frozen=True)
class Prices:
    """Prices in units of value.

    Attributes:
        budgets: (m,) of one unit of each budget, not negative.
        groups: Of one row of each group; below 0: a bonus, for a floor.
    """

    budgets: Reals
    groups: Sequence[Reals]

    def scaled(self, by: float) -> Prices:
        """Return higher or lower prices; what floors pay stays."""
        return Prices(self.budgets * by, [np.where(p > 0, p * by, p) for p in self.groups])

    def of(self, problem: Problem) -> Reals:
        """Return what each row costs."""
        cost = np.zeros(len(problem.value))
        for price, column in zip(self.budgets, problem.cost, strict=True):
            if price:
                cost += price * column
        for prices, groups in zip(self.groups, problem.groups, strict=True):
            if prices.any():
                cost += np.append(prices, 0.0)[groups.of]
        return cost


def profitable(problem: Problem, profit: Reals) -> tuple[Mask, Reals]:
    """Return the rows that make the most profit together, each with what it needs.

    Args:
        problem: What to choose from.
        profit: (n,) of each row by itself.

    Returns:
        The rows, and (n,) the profit of each one with the best of those that need it.
    """
    best = np.where(problem.usable, profit, -np.inf)
    for rows in reversed(problem.depths):
        np.add.at(best, problem.needs[rows], np.maximum(best[rows], 0))
    taken: Mask = best > 0
    for rows in problem.depths:
        taken[rows] &= taken[problem.needs[rows]]
    return taken, best


def start(problem: Problem) -> Prices:
    """Return prices under which each whole budget is worth the same, a unit of value."""
    budgets = 1 / np.maximum(problem.limit, 1)
    return Prices(budgets, [np.zeros(len(g.least)) for g in problem.groups])


def search(problem: Problem, prices: Prices, steps: int) -> tuple[Prices, int]:
    """Return the prices of the least bound found, and that bound.

    Args:
        problem: What to choose from, its floors within reach.
        prices: Where to begin.
        steps: How many prices to try.
    """
    here = best = _Tried.of(problem, prices)
    aim, stale = _AIM, 0
    for _ in range(steps):
        steepness = sum(float(slope @ slope) for slope in here.slopes)
        if not steepness:
            break
        length = (here.bound - best.bound * (1 - aim)) / steepness
        here = _Tried.of(problem, here.moved(problem, length))
        stale = 0 if here.bound < best.bound * (1 - _GAIN) else stale + 1
        best = min(best, here, key=lambda one: one.bound)
        if stale == _PATIENCE:
            here, aim, stale = best, aim / 2, 0
    return best.prices, int(np.ceil(best.bound * (1 + 1e-9)))


@dataclass(frozen=True)
class _Tried:
    """Prices and what they show.

    Attributes:
        prices: The prices.
        bound: No allowed choice is worth more.
        slopes: How the bound grows with the prices, of budgets first, then of each kind of group:
            for prices of whole budgets, caps and floors, which are of one scale.
    """

    prices: Prices
    bound: float
    slopes: Sequence[Reals]

    @staticmethod
    def of(problem: Problem, prices: Prices) -> _Tried:
        rows, best = profitable(problem, problem.value - prices.of(problem))
        bound = float(best[rows & (problem.needs < 0)].sum() + prices.budgets @ problem.limit)
        used = problem.cost @ rows.astype(np.int64)
        slope = 1 - used / _units(problem.limit)
        slopes = [np.where((prices.budgets == 0) & (slope > 0), 0.0, slope)]
        for price, groups in zip(prices.groups, problem.groups, strict=True):
            count, most = groups.count(rows), np.where(groups.most < NO_CAP, groups.most, 0)
            capped = (price > 0) | ((price == 0) & (count > groups.most))
            floored = (price < 0) | ((price == 0) & (count < groups.least))
            slack = np.where(capped, most - count, np.where(floored, groups.least - count, 0))
            slopes.append(slack / _reach(groups))
            bound += float(price @ np.where(capped, most, groups.least))
        return _Tried(prices, bound, slopes)

    def moved(self, problem: Problem, by: float) -> Prices:
        """Return the prices a step down the slope; none changes its sign in one step."""
        units = [_units(problem.limit), *(_reach(g) for g in problem.groups)]
        budgets, *groups = (
            price - by * slope / unit
            for price, slope, unit in zip(
                [self.prices.budgets, *self.prices.groups], self.slopes, units, strict=True
            )
        )
        crossed = [
            np.where(before * after < 0, 0.0, after)
            for before, after in zip(self.prices.groups, groups, strict=True)
        ]
        return Prices(np.maximum(budgets, 0.0), crossed)


def _units(limit: Ints) -> Reals:
    return np.maximum(limit, 1).astype(np.float64)


def _reach(groups: Groups) -> Reals:
    return _units(np.where(groups.most < NO_CAP, groups.most, groups.least))
