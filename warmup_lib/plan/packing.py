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

_BONUS = 256
"""Of a row for a floor, in mean values: so much that its own value hardly counts beside it."""

_TOO_MUCH = 2**61
"""Values are added up in 64 bits."""


def pack(problem: Problem, *, steps: int = 300, exact: int = 2000) -> Chosen:
    """Return a good choice, the best one where the problem is small, and what bounds every choice.

    Args:
        problem: What to choose from.
        steps: How many prices to try.
        exact: So many rows, those whose choice is the least clear, are decided exactly at the end.
    """
    level = start(problem)
    least = _least(problem, level, steps)
    within = problem.relaxed(least)
    nothing = np.zeros_like(least)
    prices, bound = search(within, _fitting(within, level, nothing), steps)
    worth = Worth(within, prices)
    rows = _tried(within, nothing, prices, worth)
    if within.short(rows):  # too little was left for the floors: they go first
        first = Bag(within)
        first.fill(worth, floors=True)
        held = [least] if within.short(first.held) else [first.held, least]
        each = [_tried(within, one, prices, worth) for one in held]
        rows = min(each, key=lambda one: (within.short(one), -within.worth(one)))
    profit = profitable(within, within.value - prices.of(within))[1]
    rows, proven = improved(problem, rows, np.abs(profit), exact)
    rows = pruned(problem, rows)
    value = problem.worth(rows)
    bounds = [
        bound + _elsewhere(problem, within, prices),
        int(problem.value[problem.usable].sum()),
        *([] if proven is None else [proven]),
    ]
    return Chosen(rows, value, max(value, min(bounds)), problem.short(rows))


def _least(problem: Problem, level: Prices, steps: int) -> Mask:
    """Return rows that fill the floors, as far as there is room for them.

    Where what is worth most does not, what is cheapest is tried, and what is worth most with a
    bonus for each row that counts.
    """
    filled, cheap = Bag(problem), Bag(problem)
    filled.fill(Worth(problem, level), floors=True)
    if not problem.short(filled.held):
        return filled.held
    counted = problem.floored
    cheap.fill(Worth(replace(problem, value=counted), level), floors=True)
    value = np.where(counted > 0, problem.value, 0)
    mean = int(value.sum()) // max(1, int(counted.sum())) + 1
    most = _TOO_MUCH // max(1, int(counted.sum()))
    paid = problem.upto_floors(value + min(_BONUS * mean, most) * counted)
    each = (filled.held, cheap.held, pack(paid, steps=steps, exact=0).rows)
    return min(each, key=lambda one: (problem.short(one), -problem.worth(one)))


def _elsewhere(problem: Problem, within: Problem, prices: Prices) -> int:
    """Return what more a choice may be worth that lacks as many rows, but to other floors."""
    lacks = [g.least - w.least for g, w in zip(problem.groups, within.groups, strict=True)]
    paid = [np.maximum(-price, 0) for price in prices.groups]
    dearest = max((float(one.max(initial=0)) for one in paid), default=0.0)
    each = zip(paid, lacks, strict=True)
    spared = sum(float((dearest - one) @ lack) for one, lack in each)
    return int(np.ceil(spared * (1 + 1e-9)))


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
