"""The rolling-origin choice of an estimator, and the Berlin months it is measured on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.berlin import FIRST, ROOMS, forecast, means
from bench.rolling import DEFAULT, rolling
from warmup_lib.forecast.family import ALL, LAST
from warmup_lib.forecast.trace import Ints

Periods = list[tuple[Ints, Ints]]


def drawn(rates: list[np.ndarray[tuple[int], np.dtype[np.float64]]], seed: int) -> Periods:
    draw = np.random.default_rng(seed)
    rows = [draw.poisson(rate) for rate in rates]
    return [(np.flatnonzero(row), row[row > 0]) for row in rows]


def test_the_first_forecasts_are_the_defaults() -> None:
    rates = [np.full(50, 3.0)] * 6
    found = rolling(drawn(rates, 1), 50, 5, {})
    assert [one.period for one in found] == [1, 2, 3, 4, 5]
    assert {one.chosen for one in found[:3]} == {DEFAULT}


def test_what_was_clearly_better_is_chosen() -> None:
    # Other items are popular in every period, for two periods each: only the last one tells.
    rates = []
    for period in range(24):
        rate = np.full(400, 0.05)
        rate[10 * (period // 2) : 10 * (period // 2) + 10] = 30.0
        rates.append(rate)
    last = rolling(drawn(rates, 2), 400, 10, {})[-1]
    assert last.chosen in (LAST, "decay 1")
    assert last.gain > 0.1


def test_what_is_ahead_by_chance_is_not_chosen() -> None:
    rates = [1.0 / np.arange(1, 301)] * 30
    found = rolling(drawn(rates, 3), 300, 20, {})
    chosen = found[-1].chosen
    assert chosen not in (LAST, "decay 1")
    assert found[-1].covered[chosen] == found[-1].ours
    assert found[-1].ours <= found[-1].hindsight


def test_a_season_is_found() -> None:
    rates = []
    for period in range(48):
        rate = np.full(240, 0.2)
        rate[20 * (period % 12) : 20 * (period % 12) + 20] = 9.0
        rates.append(rate)
    last = rolling(drawn(rates, 4), 240, 20, {"year": 12})[-1]
    assert last.chosen == "year season"
    assert last.ours > last.covered[ALL] + 0.2


@pytest.mark.realdata
def test_berlin_terms_are_foreseen_better_than_by_plain_rules(real_data: Path) -> None:
    found = forecast(real_data)
    for room, ahead in zip(ROOMS, (0.06, 0.14), strict=True):
        rows = found[room]
        assert rows[0][0] == FIRST
        assert len(rows) == 17
        mean = means(rows)
        assert mean["ours"] >= mean["last month"] + ahead
        assert mean["ours"] > mean["all history"]
        assert mean["ours"] < mean["hindsight"]
    # The plain rules as measured elsewhere: 22.6 / 38.4 and 29.2 / 54.0, hindsight 47.2 / 100.
    assert 100 * means(found[100])["last month"] == pytest.approx(22.6, abs=0.6)
    assert 100 * means(found[1000])["last month"] == pytest.approx(38.4, abs=0.3)
    assert 100 * means(found[100])["hindsight"] == pytest.approx(47.2, abs=0.3)
