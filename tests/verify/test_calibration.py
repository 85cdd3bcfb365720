"""Forecasts are scored item by item, against hits that are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.apply.handmade import items as made
from warmup_lib.forecast.spread import Spread, interval
from warmup_lib.layers.base import PlanItem
from warmup_lib.verify.calibration import BINS, HOT, Scored, facts, scored


def item(number: int, expected: float, low: int, high: int) -> PlanItem:
    one = made("responses", [number], 4)[0]
    return replace(one, expected_micro=round(expected * 1e6), expected_low=low, expected_high=high)


def hits(item: PlanItem | None, count: int, target: str = "cache") -> list[dict[str, Any]]:
    return [{"item_id": item and item.item_id, "target": target}] * count


def test_hits_are_counted_once_however_many_targets_hold_the_item() -> None:
    hot, rare, never = item(1, 8, 3, 13), item(2, 0.5, 0, 2), item(3, 6, 2, 10)
    rows = hits(hot, 9, "a") + hits(hot, 9, "b") + hits(rare, 3, "a") + hits(None, 5)
    found = scored([hot, rare, never], rows)
    assert found.hits.tolist() == [9, 3, 0]
    assert found.inside.tolist() == [True, False, False]
    told = facts(found)
    assert told["expected"] == 14.5
    assert told["realised"] == 12
    assert told["hot"] == {"from": HOT, "items": 2, "inside": 0.5}
    assert sum(told["pit"]) == 3
    assert [b["from"] for b in told["by_expected"]] == [0.5, 5.0]
    assert told["by_expected"][1] == {
        "from": 5.0,
        "items": 2,
        "expected": 7.0,
        "realised": 4.5,
        "inside": 0.5,
    }


@pytest.mark.parametrize("right", [True, False])
def test_right_forecasts_fill_the_bins_alike_and_wrong_ones_do_not(right: bool) -> None:
    draw = np.random.default_rng(3)
    spread = Spread(1.0, 0.2)
    mean = draw.lognormal(0.5, 1.2, 5_000)
    variance = spread.variance(mean)
    share = mean / variance
    seen = draw.negative_binomial(mean * share / (1 - share), share)
    told = facts(Scored(mean, variance if right else mean, *interval(mean, variance), seen))
    even = len(mean) / BINS
    worst = max(abs(count - even) for count in told["pit"])
    assert (worst < 5 * even**0.5) == right


def test_without_hot_items_no_share_is_claimed() -> None:
    assert facts(scored([item(1, 1, 0, 3)], []))["hot"]["inside"] is None
