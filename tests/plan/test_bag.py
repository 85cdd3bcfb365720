"""A bag takes what is worth most for its price, each row with what it needs, while all fits."""

from __future__ import annotations

import numpy as np

from tests.plan.instances import flat
from warmup_lib.plan.bag import Bag, Worth
from warmup_lib.plan.packing import pack
from warmup_lib.plan.prices import start
from warmup_lib.plan.problem import NO_CAP, Groups, Problem


def filled(problem: Problem, *, floors: bool = False) -> list[bool]:
    bag = Bag(problem)
    bag.fill(Worth(problem, start(problem)), floors=floors)
    return [bool(held) for held in bag.held]


def test_the_most_for_its_price_goes_first_and_what_fits_fills_the_rest() -> None:
    assert filled(flat([9, 8, 2, 7], [3, 3, 1, 4], 7)) == [True, True, True, False]


def test_floors_take_only_rows_of_groups_that_lack_some() -> None:
    tenants = Groups(np.array([0, 0, 1, -1]), np.array([1, 0]), np.array([NO_CAP, NO_CAP]))
    problem = flat([3, 5, 9, 9], [1, 1, 1, 1], 4, tenants)
    assert filled(problem, floors=True) == [False, True, False, False]


def test_what_others_need_too_gets_cheaper_once_it_is_held() -> None:
    # Alone, 1 and 2 are worth 5 for 6; once 1 is in with the stem, 2 is worth 5 for 1.
    problem = Problem(
        np.array([0, 5, 5, 6]), np.array([[5, 1, 1, 8]]), np.array([8]), np.array([-1, 0, 0, -1])
    )
    assert filled(problem) == [True, True, True, False]


def test_a_cap_holds_what_is_needed_too() -> None:
    # Row 1 needs row 0; both are of a group that may have one row.
    one = Groups(np.array([0, 0, -1]), np.array([0]), np.array([1]))
    problem = Problem(
        np.array([1, 50, 3]), np.ones((1, 3), int), np.array([9]), np.array([-1, 0, -1]), (one,)
    )
    bag = Bag(problem)
    bag.fill(Worth(problem, start(problem)))
    assert bag.held.tolist() == [True, False, True]
    assert pack(problem).rows.tolist() == [True, False, True]
