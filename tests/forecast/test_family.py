"""What each estimator expects of the coming period."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.forecast.family import ALL, LAST, Family, top

COUNTS = st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=12)


def taught(rows: list[list[int]], seasons: dict[str, int] | None = None) -> Family:
    family = Family(len(rows[0]), seasons or {})
    for at, row in enumerate(rows):
        ids = np.flatnonzero(row)
        family.learn(ids, np.array(row)[ids], float(at))
    return family


def test_counts_are_weighed_by_age() -> None:
    family = taught([[8, 0], [0, 4], [2, 2]])
    assert family.expected(LAST).tolist() == [2.0, 2.0]
    assert family.expected(ALL).tolist() == pytest.approx([10 / 3, 2.0])
    # A quarter, a half and the whole.
    assert family.expected("decay 1").tolist() == pytest.approx([4 / 1.75, 4 / 1.75])
    assert family.expected("steady all").tolist() == pytest.approx(
        [((8**0.5 + 2**0.5) / 3) ** 2, ((2 + 2**0.5) / 3) ** 2]
    )
    assert family.expected("damped all").tolist() == pytest.approx([6 / 3, 4 / 3])


def test_a_part_of_a_period_is_worth_its_length() -> None:
    family = Family(1, {})
    family.learn(np.array([0]), np.array([3]), 0.0, 0.25)
    for name in family.names:
        wanted = [6.0] if name.startswith("damped") else [12.0]
        assert family.expected(name).tolist() == pytest.approx(wanted), name


def test_a_season_looks_at_the_same_time_of_other_days() -> None:
    rows = [[5, 1] if hour % 4 == 0 else [0, 1] for hour in range(12)]
    family = taught(rows, {"day": 4})
    coming = family.expected("day season")
    assert coming[0] > 1.7 * coming[1]
    assert family.expected(LAST).tolist() == [0.0, 1.0]
    off = taught(rows[:11], {"day": 4}).expected("day season")
    assert off[0] < coming[0]


def test_before_a_season_has_passed_it_is_the_decayed_count() -> None:
    family = taught([[1, 2], [3, 4]], {"day": 24})
    assert family.expected("day season").tolist() == family.expected("decay 16").tolist()


def test_thousands_of_periods_stay_within_a_floats_range() -> None:
    family = Family(2, {"day": 24})
    for at in range(3000):
        family.learn(np.array([0]), np.array([7]), float(at))
    family.learn(np.array([1]), np.array([7]), 3000.0)
    for name in family.names:
        expected = family.expected(name)
        assert np.all(np.isfinite(expected)), name
    assert family.expected("decay 1").tolist() == pytest.approx([3.5, 3.5])
    assert family.expected("decay 16")[0] == pytest.approx(7 * 0.5 ** (1 / 16))


@given(COUNTS)
def test_a_steady_demand_is_expected_to_stay(rows: list[list[int]]) -> None:
    steady = taught([rows[0]] * len(rows))
    for name in steady.names:
        expected = steady.expected(name)
        known = np.array(rows[0][: len(expected)], float)
        if name.startswith("damped"):
            assert np.all(expected <= known + 1e-9), name
            assert np.all(expected >= known / 2 - 1e-9), name
        else:
            np.testing.assert_allclose(expected, known, rtol=1e-9, err_msg=name)


@given(COUNTS, st.floats(1.5, 9.0))
def test_twice_the_demand_is_expected_twice(rows: list[list[int]], factor: float) -> None:
    plain = taught(rows)
    family = Family(4, {})
    for at, row in enumerate(rows):
        ids = np.flatnonzero(row)
        # Counts need not be whole for the sums to be right.
        family.learn(ids, np.array(row)[ids] * factor, float(at))
    for name in plain.names:
        np.testing.assert_allclose(family.expected(name), factor * plain.expected(name), rtol=1e-9)


def test_the_top_are_the_most_expected_and_of_equals_the_latest() -> None:
    expected, last = np.array([1.0, 3.0, 0.0, 1.0, 1.0]), np.array([4, 1, 9, 7, 5])
    assert top(expected, last, 3).tolist() == [1, 3, 4]
    assert top(expected, last, 10).tolist() == [1, 3, 4, 0]
    assert top(np.zeros(0), last, 3).tolist() == []


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 10))
def test_top_agrees_with_sorting(values: list[int], room: int) -> None:
    expected, last = np.array(values, float), np.arange(len(values))
    wanted = sorted((i for i, v in enumerate(values) if v), key=lambda i: (-values[i], -i))[:room]
    assert top(expected, last, room).tolist() == wanted
