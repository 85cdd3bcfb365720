"""What a request of each past day is worth."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.errors import ConfigError
from warmup_lib.forecast.decay import day_weights
from warmup_lib.tables import MICRO

LAST = date(2026, 3, 14)


def test_a_request_loses_half_its_worth_every_half_life() -> None:
    weights = day_weights(["2026-03-13", "2026-03-14"], timedelta(days=1))
    assert weights == {"2026-03-13": 333_333, "2026-03-14": 666_667}


def test_a_day_that_is_not_there_is_no_day_without_demand() -> None:
    # Ages 2 and 0 under a half life of two days: worth 1/2 and 1, of 3/2 together.
    weights = day_weights(["2026-03-12", "2026-03-14"], timedelta(days=2))
    assert weights == {"2026-03-12": 333_333, "2026-03-14": 666_667}


@given(
    ages=st.sets(st.integers(0, 60), min_size=1),
    half_life=st.timedeltas(timedelta(hours=6), timedelta(days=90)),
)
def test_weights_sum_to_one_request_and_never_rise_with_age(
    ages: set[int], half_life: timedelta
) -> None:
    days = [(LAST - timedelta(days=age)).isoformat() for age in sorted(ages, reverse=True)]
    weights = list(day_weights(days, half_life).values())
    assert sum(weights) == MICRO
    assert all(weight >= 0 for weight in weights)
    # The newest day takes what rounding left over, at most half a millionth a day.
    assert weights[:-1] == sorted(weights[:-1])
    assert all(weights[-1] >= weight - len(weights) for weight in weights)


def test_a_half_life_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="half_life"):
        day_weights(["2026-03-14"], timedelta(0))
