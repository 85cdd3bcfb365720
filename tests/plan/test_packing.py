"""Choices keep to every budget, cap and floor, and come near the best there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.instances import instance
from warmup_lib.plan.bag import Bag, Worth
from warmup_lib.plan.exact import exact
from warmup_lib.plan.packing import pack
from warmup_lib.plan.prices import profitable, search, start
from warmup_lib.plan.problem import NO_CAP, Groups, Problem


def brute(problem: Problem) -> int | None:
    """Return the value of the best choice that reaches the floors, by trying all."""
    count = len(problem.value)
    best = None
    for bits in range(2**count):
        rows = (bits >> np.arange(count)) & 1 == 1
        if problem.allowed(rows) and not problem.short(rows):
            best = max(best or 0, problem.worth(rows))
    return best


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    count, budgets = draw(st.integers(0, 9)), draw(st.integers(0, 3))
    numbers = st.lists(st.integers(0, 20), min_size=count, max_size=count)
    needs = [draw(st.integers(-1, row - 1)) for row in range(count)]
    groups = []
    for _ in range(draw(st.integers(0, 2))):
        of = draw(st.lists(st.integers(-1, 1), min_size=count, max_size=count))
        least = draw(st.lists(st.integers(0, 2), min_size=2, max_size=2))
        most = [low + draw(st.integers(0, 3)) for low in least]
        groups.append(Groups(np.array(of, int), np.array(least), np.array(most)))
    return Problem(
        np.array(draw(numbers), int),
        np.array([draw(numbers) for _ in range(budgets)], int).reshape(budgets, count),
        np.array([draw(st.integers(0, 60)) for _ in range(budgets)], int),
        np.array(needs, int),
        tuple(groups),
    )


@settings(max_examples=50, deadline=None)
@given(problem=problems())
def test_small_problems_are_solved_as_by_trying_everything(problem: Problem) -> None:
    best, found = brute(problem), exact(problem)
    assert (found.value if found else None) == best
    greedy = pack(problem, exact=0)
    assert problem.allowed(greedy.rows)
    assert greedy.value == problem.worth(greedy.rows) <= greedy.bound
    assert greedy.short == problem.short(greedy.rows)
    chosen = pack(problem)
    assert problem.allowed(chosen.rows)
    assert greedy.value <= chosen.value <= chosen.bound
    if best is not None and not chosen.short:
        assert chosen.value <= best <= chosen.bound
        assert chosen.value == best


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 300), exactly=st.sampled_from([0, 50]))
def test_choices_are_allowed_and_bounded(seed: int, count: int, exactly: int) -> None:
    problem = instance(seed, count)
    chosen = pack(problem, exact=exactly)
    assert problem.allowed(chosen.rows)
    assert chosen.value == problem.worth(chosen.rows) <= chosen.bound
    assert chosen.bound <= problem.value.sum()
    assert chosen.short == problem.short(chosen.rows)
    again = pack(problem, exact=exactly)
    assert (again.rows == chosen.rows).all()


def compared(seeds: range) -> None:
    draw = np.random.default_rng(1)
    for seed in seeds:
        problem = instance(seed, int(draw.integers(100, 2001)))
        best = exact(problem)
        assert best is not None
        greedy, chosen = pack(problem, exact=0), pack(problem)
        assert chosen.short == greedy.short == 0
        assert max(chosen.value, greedy.value) <= best.value <= min(chosen.bound, greedy.bound)
        assert chosen.value >= 0.9999 * best.value
        assert greedy.value >= 0.98 * best.value


def test_choices_are_as_good_as_the_exact_optimum() -> None:
    compared(range(4))


@pytest.mark.slow
def test_choices_are_as_good_as_the_exact_optimum_on_fifty() -> None:
    compared(range(50))


def flat(value: list[int], cost: list[int], limit: int, *groups: Groups) -> Problem:
    needs = np.full(len(value), -1)
    return Problem(np.array(value), np.array([cost]), np.array([limit]), needs, groups)


def test_the_single_best_row_beats_many_cheap_ones() -> None:
    # By value for its cost, the first goes first, and the second then has no room.
    assert pack(flat([3, 100], [1, 100], 100)).rows.tolist() == [False, True]


def test_a_stem_is_worth_it_for_all_that_share_it() -> None:
    # No head pays for the stem by itself as well as the lone row does; three together do.
    shared = Problem(
        np.array([0, 40, 40, 40, 60]),
        np.array([[60, 10, 10, 10, 80]]),
        np.array([90]),
        np.array([-1, 0, 0, 0, -1]),
    )
    assert pack(shared, exact=0).rows.tolist() == [True, True, True, True, False]


def test_a_floor_is_filled_though_others_are_worth_more() -> None:
    tenants = Groups(np.array([0, 0, 0, 1, 1]), np.array([0, 1]), np.array([NO_CAP, NO_CAP]))
    for exactly in (0, 2000):
        chosen = pack(flat([9, 8, 7, 1, 2], [1, 1, 1, 1, 1], 3, tenants), exact=exactly)
        assert chosen.rows.tolist() == [True, True, False, False, True]
        assert (chosen.value, chosen.short) == (19, 0)


def test_a_floor_out_of_reach_is_filled_as_far_as_it_goes() -> None:
    tenants = Groups(np.array([0, 1, 1, 1]), np.array([0, 3]), np.array([NO_CAP, NO_CAP]))
    chosen = pack(flat([100, 5, 6, 7], [1, 2, 2, 2], 5, tenants))
    assert (chosen.short, chosen.value) == (1, 113)
    assert exact(flat([100, 5, 6, 7], [1, 2, 2, 2], 5, tenants)) is None


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


def test_nothing_to_choose_from_and_nothing_that_fits() -> None:
    nothing = flat([], [], 5)
    assert pack(nothing).value == pack(nothing).bound == 0
    too_big = flat([5, 6], [7, 8], 6)
    chosen = pack(too_big)
    assert (chosen.rows.any(), chosen.value, chosen.bound) == (False, 0, 0)


def test_without_any_limit_everything_of_value_is_chosen() -> None:
    free = Problem(np.array([3, 0, 5]), np.zeros((0, 3), int), np.zeros(0, int), np.full(3, -1))
    assert pack(free).rows.tolist() == [True, False, True]


def test_ties_go_to_the_earlier_row() -> None:
    assert pack(flat([2] * 6, [1] * 6, 3), exact=0).rows.tolist() == [True] * 3 + [False] * 3


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
