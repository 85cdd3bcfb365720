"""Prices bound every choice, and the profit under them is the best there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tests.plan.instances import flat, instance, problems
from warmup_lib.plan.exact import exact
from warmup_lib.plan.prices import Prices, profitable, search, start
from warmup_lib.plan.problem import Problem


@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_profit_is_the_best_of_every_set_that_holds_what_it_needs(problem: Problem) -> None:
    profit = problem.value - 7.5
    rows, each = profitable(problem, profit)
    count = len(problem.value)
    best = 0.0
    for bits in range(2**count):
        one = (bits >> np.arange(count)) & 1 == 1
        needed = problem.needs[one]
        whole = one[needed[needed >= 0]].all() and problem.usable[one].all()
        best = max(best, float(profit[one].sum())) if whole else best
    assert profit[rows].sum() == pytest.approx(best)
    assert each[rows & (problem.needs < 0)].sum() == pytest.approx(best)


def test_the_bound_of_a_divisible_choice_is_the_linear_one() -> None:
    # The best density first, and half of the next one: 10 + 6 / 2.
    _, bound = search(flat([10, 6, 1], [5, 4, 9], 7), start(flat([10, 6, 1], [5, 4, 9], 7)), 300)
    assert bound in (13, 14)


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 30.0])
def test_any_prices_bound_the_best_choice(scale: float) -> None:
    problem = instance(5, 200)
    best = exact(problem)
    assert best is not None
    level = start(problem)
    total = float(problem.value.sum())
    prices = Prices(level.budgets * total * scale, level.groups)
    bound = search(problem, prices, 0)[1]
    assert best.value <= search(problem, prices, 100)[1] <= bound


def test_raising_prices_leaves_what_floors_pay() -> None:
    prices = Prices(np.array([2.0]), [np.array([3.0, -4.0])])
    raised = prices.scaled(10)
    assert raised.budgets.tolist() == [20.0]
    assert [price.tolist() for price in raised.groups] == [[30.0, -4.0]]
