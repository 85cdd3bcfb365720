"""The choice under budgets: by prices, then greedily, and exactly where it is least clear.

Prices tell what a unit of each budget is worth (see `prices`). First the floors are filled, then
everything is taken that is worth the prices, which are raised until it fits; the rest of the
budgets goes to what is worth most for its price, each row with what it needs and does not have yet.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warmup_lib.plan.bag import Bag, Worth
from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.exact import improved
from warmup_lib.plan.prices import Prices, profitable, search, start
from warmup_lib.plan.problem import Chosen, Groups, Problem, pruned

_STEP = 4.0
_STEPS = 40
_HALVINGS = 12

_ABOVE = (1.0, 1.02, 1.1)
"""How far above the lowest prices that fit the bulk is taken: greed then has more room."""


def pack(problem: Problem, *, steps: int = 300, exact: int = 2000) -> Chosen:
    """Return a good choice, the best one where the problem is small, and what bounds every choice.

    Args:
        problem: What to choose from.
        steps: How many prices to try.
        exact: So many rows, those whose choice is the least clear, are decided exactly at the end.
    """
    level = start(problem)
    least = Bag(problem)
    least.fill(Worth(problem, level), floors=True)
    within = problem.relaxed(least.held)
    nothing = np.zeros_like(least.held)
    prices, bound = search(within, _fitting(within, level, nothing), steps)
    worth = Worth(within, prices)
    rows = _tried(within, nothing, prices, worth)
    if within.short(rows):  # too little was left for the floors: they go first
        first = Bag(within)
        first.fill(worth, floors=True)
        each = [rows, *(_tried(within, one, prices, worth) for one in (first.held, least.held))]
        rows = min(each, key=lambda one: (within.short(one), -within.worth(one)))
    profit = profitable(within, within.value - prices.of(within))[1]
    rows, proven = improved(within, rows, np.abs(profit), exact)
    rows = pruned(within, rows)
    value = within.worth(rows)
    bounds = [
        bound,
        int(problem.value[problem.usable].sum()),
        *([] if proven is None else [proven]),
    ]
    return Chosen(rows, value, max(value, min(bounds)), problem.short(rows))


def _fitting(problem: Problem, prices: Prices, floors: Mask) -> Prices:
    """Return prices under which the bulk fits, each raised no further than its budget asks for.

    Less is worth a higher price, so that no budget is broken again for the sake of another one.
    """
    budgets, tiny = prices.budgets.copy(), start(problem).budgets

    def over(price: float, of: int) -> float:
        budgets[of] = price
        bulk = _bulk(problem, replace(prices, budgets=budgets)) | floors
        return float((problem.cost[of] @ bulk) / max(1, problem.limit[of]))

    shares = [over(budgets[of], of) for of in range(len(budgets))]
    for of in np.argsort(shares)[::-1].tolist():
        low = high = max(budgets[of], tiny[of])
        if over(budgets[of], of) <= 1:
            continue
        for _ in range(_STEPS):
            if over(high, of) <= 1:
                break
            low, high = high, high * _STEP
        for _ in range(_HALVINGS):
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if over(middle, of) <= 1 else (middle, high)
        budgets[of] = high
    return replace(prices, budgets=budgets)


def _tried(problem: Problem, floors: Mask, prices: Prices, worth: Worth) -> Mask:
    """Return the best of a few choices that hold some rows for the floors."""
    fitting = _fitting(problem, prices, floors)
    each = [_filled(problem, floors, fitting.scaled(above), worth) for above in _ABOVE]
    return min(each, key=lambda one: (problem.short(one), -problem.worth(one)))


def _bulk(problem: Problem, prices: Prices) -> Mask:
    return profitable(problem, problem.value - prices.of(problem))[0]


def _filled(problem: Problem, floors: Mask, prices: Prices, worth: Worth) -> Mask:
    """Return the bulk that is worth the prices, cut to the caps, and filled up."""
    bulk = _bulk(problem, prices)
    for groups in problem.groups:
        bulk = _cut(groups, bulk, floors, worth)
    bulk |= floors
    for rows in problem.depths:
        bulk[rows] &= bulk[problem.needs[rows]]
    if not problem.allowed(bulk):
        bulk = floors
    bag = Bag(problem, bulk)
    bag.fill(worth, floors=True)
    bag.fill(worth)
    return pruned(problem, bag.held)


def _cut(groups: Groups, bulk: Mask, floors: Mask, worth: Worth) -> Mask:
    """Leave of each group no more than its cap: what is worth most for its price."""
    both = bulk | floors
    over = both & np.append(groups.count(both) > groups.most, False)[groups.of]
    if not over.any():
        return bulk
    cut: Mask = bulk & ~over
    cut[groups.first(over, groups.most, -worth.value / worth.price, ~floors)] = True
    cut &= bulk
    return cut
