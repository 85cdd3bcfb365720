"""The estimator that wins is the one a history was made for; without evidence none does."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from scipy.sparse import csc_array

from warmup_lib.forecast.estimators import DEFAULT, Estimator, family
from warmup_lib.forecast.rolling import (
    HISTORY,
    ORIGINS,
    Counts,
    Won,
    choose,
    forecasts,
    never_again,
    volume,
)

FIRST = date(2026, 3, 2)  # a Monday
ROOM = 20


def counts(requests: np.ndarray, tenants: int = 1) -> Counts:
    items, length = requests.shape
    days = [(FIRST + timedelta(days=n)).isoformat() for n in range(length)]
    names = [f"t{n}" for n in range(tenants)]
    return Counts(days, csc_array(requests.astype(float)), np.arange(items) % tenants, names)


def steady(length: int = 14) -> np.ndarray:
    """The same 20 of 200 items are hot every day, under noise that hides it on a single one."""
    draw = np.random.default_rng(1)
    rate = np.where(np.arange(200) < ROOM, 3.0, 2.0)
    return draw.poisson(rate[:, None], (200, length))


def passing(length: int = 14) -> np.ndarray:
    """Each item is hot for two days and never again."""
    return np.array(
        [[30 if n // 10 in (day, day + 1) else 0 for day in range(length)] for n in range(160)]
    )


def weekly(length: int = 21) -> np.ndarray:
    """Every weekday has its own hot items."""
    return np.array([[30 if n % 7 == day % 7 else 0 for day in range(length)] for n in range(140)])


def test_steady_demand_is_averaged_over_long_and_passing_demand_is_not() -> None:
    assert choose(counts(steady()), family(pressed=False), ROOM)["t0"].estimator.half_life > DEFAULT
    won = choose(counts(passing()), family(pressed=False), ROOM)["t0"]
    assert won.estimator.half_life <= DEFAULT


def test_weekly_demand_counts_the_same_weekday_more() -> None:
    won = choose(counts(weekly()), family(pressed=False), ROOM)["t0"]
    assert won.estimator.weekday > 1
    assert won.gain > 0.5
    assert won.share is not None
    assert won.share > 0.9


def test_each_tenant_has_its_own() -> None:
    both = np.zeros((400, 14))
    both[::2], both[1::2][:160] = steady(), passing()
    won = choose(counts(both, tenants=2), family(pressed=False), 2 * ROOM)
    assert won["t0"].estimator.half_life > won["t1"].estimator.half_life


def test_too_short_a_history_keeps_the_default() -> None:
    won = choose(counts(steady(HISTORY)), family(pressed=False), ROOM)
    assert won == {"t0": Won(Estimator(DEFAULT))}
    assert [len(part) for part in forecasts(counts(steady(HISTORY)), won)] == [0, 0]


def test_what_is_better_by_chance_alone_does_not_win() -> None:
    """Items are drawn anew every day, so that no estimator knows anything."""
    draw = np.random.default_rng(2)
    won = [
        choose(counts(draw.poisson(1.0, (300, 14))), family(pressed=False), ROOM)["t0"]
        for _ in range(20)
    ]
    assert sum(one.gain > 0 for one in won) <= 10
    assert all(one.gain < 0.02 for one in won)


def test_pressure_shortens_the_half_life_of_a_pressed_estimator_only() -> None:
    days = counts(steady()).days
    pressed, plain = Estimator(DEFAULT, pressed=True), Estimator(DEFAULT)
    assert plain.weights(days, 2.0) == plain.weights(days)
    assert pressed.weights(days, 2.0) == Estimator(DEFAULT / 2).weights(days)
    assert any(e.pressed for e in family(pressed=True))


def test_forecasts_of_past_days_know_only_the_days_before() -> None:
    """Whatever happens on the last day, earlier forecasts stay."""
    one, other = steady(), steady()
    other[:, -1] = other[::-1, -1] * 7
    won = {"t0": Won(Estimator(DEFAULT))}
    expected, realised = forecasts(counts(one), won)
    expected_too, realised_too = forecasts(counts(other), won)
    assert np.array_equal(expected, expected_too)
    assert not np.array_equal(realised, realised_too)
    assert len(counts(one).origins) == ORIGINS


@pytest.mark.parametrize(("length", "factor"), [(14, 0.5), (6, 1.0)])
def test_the_volume_of_a_day_is_that_of_its_weekday(length: int, factor: float) -> None:
    requests = np.full((50, length), 8)
    requests[:, [d for d in range(length) if d % 7 == 0]] = 4  # Mondays, and the day served is one
    won = {"t0": Won(Estimator(timedelta(minutes=30)))}  # knows only Sunday
    assert volume(counts(requests), won) == pytest.approx(factor)


def test_items_that_never_come_again_are_told_by_tenant() -> None:
    once = np.eye(14, dtype=int).repeat(20, axis=0)  # each item on one day only
    both = np.zeros((560, 14))
    both[::2], both[1::2] = once, once
    both[1, :] = 1  # one item of the second tenant comes every day
    assert never_again(counts(both, tenants=2)) == ["t0"]
    assert never_again(counts(once[:8])) == []  # too few to say so
