"""What traffic keeps warm is left to it, unless the early window would begin without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from tests.layers.building import demand, head, new_keys
from warmup_lib.config import Config
from warmup_lib.layers.natural import kept_warm
from warmup_lib.layers.prefixes import Prefixes

DAY = 1_000_000


def config(**plan: Any) -> Config:
    return Config.model_validate({"plan": plan})


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (None, [False, False, True, True, True]),
        ("1h", [False, False, False, False, False]),
        ("20m", [False, False, True, False, False]),
    ],
)
def test_once_in_a_lifetime_is_kept_but_for_what_the_early_window_needs(
    window: str | None, expected: list[bool]
) -> None:
    # A lifetime of half an hour: 48 requests a day are one in each. 20 minutes: 72 are one.
    heat = pa.array([0, 48 * DAY - 1, 48 * DAY, 72 * DAY, 10**13], pa.int64())
    assert kept_warm(heat, timedelta(minutes=30), config(early_window=window)).to_pylist() == (
        expected
    )


def test_heads_that_traffic_keeps_are_left_out_and_say_so() -> None:
    keys = new_keys()
    rows = [head(keys, "t", "You are busy. " * 90, 500), head(keys, "t", "You are not. " * 90, 40)]
    of = demand(heads=rows)
    steady = config(early_window=None)
    assert Prefixes().refused(of, steady)["reason"].to_pylist() == ["kept_warm"]
    assert Prefixes().candidates(of, steady)["heat_micro"].to_pylist() == [40 * DAY]
    assert Prefixes().candidates(of, config()).num_rows == 2
