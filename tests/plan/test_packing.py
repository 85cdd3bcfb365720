"""Choices keep to every budget, cap and floor, and come near the best there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.instances import FLOORS, brute, flat, instance, optimum, problems
from warmup_lib.plan.packing import pack
from warmup_lib.plan.problem import NO_CAP, Groups, Problem


@settings(max_examples=50, deadline=None)
@given(problem=problems())
def test_small_problems_are_solved_as_by_trying_everything(problem: Problem) -> None:
    greedy = pack(problem, exact=0)
    assert problem.allowed(greedy.rows)
    assert greedy.value == problem.worth(greedy.rows) <= greedy.bound
    assert greedy.short == problem.short(greedy.rows)
    chosen = pack(problem)
    assert problem.allowed(chosen.rows)
    assert chosen.value <= chosen.bound
    short, value = brute(problem)
    assert (chosen.short, chosen.value) == (short, value)
    assert greedy.short > short or value <= greedy.bound


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 300),
    exactly=st.sampled_from([0, 50]),
    floors=st.sampled_from(FLOORS),
)
def test_choices_are_allowed_and_bounded(
    seed: int, count: int, exactly: int, floors: float
) -> None:
    problem = instance(seed, count, floors=floors)
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
        floors = FLOORS[seed % len(FLOORS)]
        problem = instance(seed, int(draw.integers(100, 2001)), floors=floors)
        short, value = optimum(problem)
        greedy, chosen = pack(problem, exact=0), pack(problem)
        assert chosen.short == short <= greedy.short <= short + max(1, short // 10)
        assert 0.9999 * value <= chosen.value <= value <= chosen.bound
        assert greedy.short > short or greedy.value <= value <= greedy.bound
        assert floors > FLOORS[0] or greedy.value >= 0.98 * value


def test_choices_are_as_good_as_the_exact_optimum() -> None:
    compared(range(5))


@pytest.mark.slow
def test_choices_are_as_good_as_the_exact_optimum_on_fifty() -> None:
    compared(range(50))


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


@pytest.mark.parametrize("exactly", [0, 2000])
def test_no_floor_is_given_up_that_there_is_room_for(exactly: int) -> None:
    # By value for its cost the last row fills a floor first, and leaves no room for the other.
    floors = Groups(np.array([1, 0, 1, 1, 0, 1, 0, 1]), np.array([1, 1]), np.full(2, NO_CAP))
    value, cost = [11, 467, 330, 400, 50, 126, 342, 874], [93, 81, 45, 26, 47, 44, 81, 40]
    chosen = pack(flat(value, cost, 86, floors), exact=exactly)
    assert (chosen.short, chosen.value) == (0, 450)


def test_what_is_lacking_is_taken_from_the_floor_where_it_costs_least() -> None:
    # One of two floors has room. The first goes by value for its cost, the second is worth more
    # with what is left.
    floors = Groups(np.array([0, 1, -1]), np.array([1, 1]), np.full(2, NO_CAP))
    chosen = pack(flat([50, 60, 40], [4, 6, 4], 8, floors))
    assert (chosen.short, chosen.value) == (1, 90)
    assert pack(flat([50, 95, 40], [4, 8, 4], 8, floors)).rows.tolist() == [False, True, False]


@settings(max_examples=50, deadline=None)
@given(data=st.data(), count=st.integers(1, 12))
def test_greed_keeps_the_floors_that_the_cheapest_rows_keep(
    data: st.DataObject, count: int
) -> None:
    numbers = st.lists(st.integers(1, 30), min_size=count, max_size=count)
    of = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    least = np.minimum(np.bincount(of, minlength=3), data.draw(st.integers(0, 5)))
    floors = Groups(np.array(of), least, np.full(3, NO_CAP))
    problem = flat(data.draw(numbers), data.draw(numbers), data.draw(st.integers(0, 99)), floors)
    assert pack(problem, exact=0).short == brute(problem)[0]


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
