"""The spread of counts about forecasts: against draws whose distribution is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, poisson

from warmup_lib.forecast.spread import HOT, LEVEL, Curve, Spread, fit, interval, pit


def draws(burst: float, power: float, count: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Draw counts by another way: a gamma rate, and Poisson counts of it."""
    draw = np.random.default_rng(7)
    mean = draw.lognormal(1.0, 1.5, count)
    variance = burst * mean**power
    rate = draw.gamma(mean**2 / variance, variance / mean)
    return mean, draw.poisson(rate)


@pytest.mark.parametrize(("burst", "power"), [(0.5, 1.2), (2.0, 1.5), (0.7, 1.9)])
def test_fit_finds_the_spread_that_made_the_counts(burst: float, power: float) -> None:
    curve, found = fit(*draws(burst, power))
    at = np.array([0.3, 3.0, 30.0])
    assert curve.mean(at) == pytest.approx(at, rel=0.15)
    assert found.power == pytest.approx(power, abs=0.1)
    # Ends are whole numbers, so that a little less already holds the share.
    assert 0.6 * burst < found.burst < 1.1 * burst
    assert found.pairs == 20_000


def test_intervals_of_days_to_come_hold_their_share() -> None:
    mean, seen = draws(2.0, 1.5)
    _, spread = fit(mean[::2], seen[::2])
    other, came = mean[1::2], seen[1::2]
    low, high = interval(other, spread.variance(other))
    hot = other >= HOT
    assert ((low <= came) & (came <= high))[hot].mean() == pytest.approx(LEVEL, abs=0.02)


def test_pit_is_uniform_where_the_spread_is_right_and_tells_where_it_is_not() -> None:
    mean, seen = draws(2.0, 1.5)
    right = Spread(2.0, 1.5).variance(mean)
    assert kstest(pit(mean, right, seen, 1), "uniform").pvalue > 0.01
    assert kstest(pit(mean, mean, seen, 1), "uniform").pvalue < 1e-6


def test_without_burst_it_is_poisson() -> None:
    mean = np.array([0.5, 5.0, 50.0])
    low, high = interval(mean, Spread(0.0).variance(mean), 0.9)
    assert low.tolist() == poisson.ppf(0.05, mean).tolist()
    assert high.tolist() == poisson.ppf(0.95, mean).tolist()


def test_few_pairs_give_the_default() -> None:
    assert fit(np.ones(99), np.ones(99, np.int64)) == (Curve(), Spread())
    assert fit(np.zeros(500), np.ones(500, np.int64)) == (Curve(), Spread())


def test_counts_of_rare_items_are_shrunk_as_what_came_says() -> None:
    true = Curve(0.9, 2.0, 1.5)
    draw = np.random.default_rng(5)
    heat = draw.lognormal(1.0, 1.5, 20_000)
    mean = true.mean(heat)
    rate = draw.gamma(4.0, mean / 4.0)
    curve, spread = fit(heat, draw.poisson(rate))
    at = np.array([0.5, 1.0, 5.0, 50.0])
    assert curve.mean(at) == pytest.approx(true.mean(at), rel=0.1)
    assert spread.power > 1.8  # the rates drift, nothing comes in bursts
    assert curve.mean(np.zeros(1)) == 0


@given(
    mean=st.floats(0, 1e6),
    burst=st.floats(0, 100),
    power=st.floats(1, 2),
    level=st.floats(0.01, 0.99),
)
def test_interval_is_ordered_and_widens_with_its_level(
    mean: float, burst: float, power: float, level: float
) -> None:
    means = np.array([mean])
    variance = Spread(burst, power).variance(means)
    low, high = interval(means, variance, level)
    wide_low, wide_high = interval(means, variance, level + (1 - level) / 2)
    assert 0 <= wide_low[0] <= low[0] <= high[0] <= wide_high[0]
