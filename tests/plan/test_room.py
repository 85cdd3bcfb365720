"""What there is room for: what is taken out of a union costs no other row its place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.instances import instance
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.problem import NO_CAP, Groups, Problem
from warmup_lib.plan.room import with_room

NOBODY = np.zeros(0, np.int64)


def problem(
    value: list[int], cost: list[list[int]], limit: list[int], needs: list[int], *groups: Groups
) -> Problem:
    arrays = (np.array(one, np.int64) for one in (value, cost, limit, needs))
    return Problem(*arrays, groups)


def kept(made: Problem, rows: list[int], own: list[int], pinned: list[int]) -> list[int]:
    masks = [np.isin(np.arange(len(made.value)), one) for one in (rows, own, pinned)]
    return np.flatnonzero(with_room(made, *masks, made.value)).tolist()


def test_what_is_worth_most_for_what_it_takes_goes_first() -> None:
    made = problem([9, 8, 4, 1], [[6, 4, 2, 4]], [10], [-1] * 4)
    assert kept(made, [0, 1, 2, 3], [], []) == [1, 2]  # 0 has no room, and nothing after it
    assert kept(made, [0, 2, 3], [], []) == [0, 2]
    assert kept(made, [0, 1, 2, 3], [], [3]) == [1, 2, 3]


def test_what_takes_nothing_of_a_full_budget_stays() -> None:
    made = problem([9, 8, 1], [[9, 9, 0]], [10], [-1] * 3)
    assert kept(made, [0, 1, 2], [], []) == [0, 2]


def test_floors_go_before_the_rest_and_caps_hold() -> None:
    small = Groups(np.array([-1, -1, 0, 0]), np.array([1]), np.array([NO_CAP]))
    made = problem([9, 8, 2, 1], [[1, 1, 1, 1]], [2], [-1] * 4, small)
    assert kept(made, [0, 1, 2, 3], [2, 3], []) == [0, 2]
    assert kept(made, [0, 1, 2, 3], [3], []) == [0, 3]  # what the log's demand chose fills floors
    capped = Groups(np.array([0, 0, 0, 1]), np.array([0, 0]), np.array([2, 9]))
    made = problem([9, 8, 2, 1], [[0] * 4], [2], [-1] * 4, capped)
    assert kept(made, [0, 1, 2, 3], [], []) == [0, 1, 3]
    assert kept(made, [0, 1, 2, 3], [], [2]) == [0, 2, 3]


def test_what_several_need_is_paid_for_once_and_goes_with_the_last_of_them() -> None:
    made = problem([5, 4, 0, 3], [[1, 1, 4, 2]], [7], [2, 2, -1, -1])
    assert kept(made, [0, 1, 2, 3], [], []) == [0, 2, 3]  # 3, then 0 with 2; no room for 1
    assert kept(made, [0, 1, 2], [], []) == [0, 1, 2]
    assert kept(made, [2, 3], [], []) == [3]  # nothing needs 2


def test_what_never_fits_stands_in_nobody_s_way() -> None:
    made = problem([99, 1], [[11, 1]], [10], [-1, -1])
    assert kept(made, [0, 1], [], []) == [1]


@pytest.mark.parametrize("tight", [1, 3])
@given(seed=st.integers(0, 10_000), data=st.data())
def test_no_row_loses_its_room_when_others_are_taken_out(
    tight: int, seed: int, data: st.DataObject
) -> None:
    made = instance(seed, 60)
    made = Problem(made.value, made.cost, made.limit // tight, made.needs, made.groups)
    count = len(made.value)
    drawn = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    rows = drawn.random(count) < 0.8
    gone = drawn.random(count) < 0.2
    pinned = made.with_needs(drawn.random(count) < 0.05)
    own = drawn.random(count) < 0.5  # it fills the floors, and is not taken out
    whole, less = made.with_needs(rows), made.with_needs(rows & (~gone | own))
    asked: Ints = drawn.permutation(count)
    before = with_room(made, whole, own, pinned, asked)
    after = with_room(made, less, own, pinned, asked)
    assert made.allowed(before)
    alone = np.isin(np.arange(count), made.needs, invert=True)  # no other row needs it
    assert not (before & less & alone & ~after).any()
