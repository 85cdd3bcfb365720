"""Plain sets and a cache that begins cold, period by period."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.forecast.caches import lru
from warmup_lib.forecast.sets import lru_cold, static_sets
from warmup_lib.forecast.trace import Flags, Ints, Periods, periods_of

MINUTE = 60_000_000


def served(rows: list[list[int]], room: int) -> dict[str, list[str]]:
    """Return hits (x) and misses (.) of each set by period of an hour."""
    item, periods = hourly(rows)
    return {
        name: ["".join("x" if hit else "." for hit in flags[a:b]) for a, b in periods.spans()]
        for name, flags in static_sets(item, periods, room).items()
    }


def hourly(rows: list[list[int]]) -> tuple[Ints, Periods]:
    at = [hour * 60 * MINUTE + place for hour, row in enumerate(rows) for place in range(len(row))]
    item = np.array([x for row in rows for x in row], np.int64)
    return item, periods_of(np.array(at, np.int64), timedelta(hours=1))


def test_each_set_is_made_of_what_its_name_says() -> None:
    rows = [[0, 0, 0, 1, 1, 2], [1, 2, 2, 0], [1, 2, 0, 3, 3, 3]]
    assert served(rows, 1) == {
        # Nothing, then the top of the first hour, 0, then that of the second, 2.
        "static_last": ["......", "...x", ".x...."],
        # 0 was asked for 3 times, then 4 times; no other as often.
        "static_all": ["......", "...x", "..x..."],
        "static_hindsight": ["xxx...", ".xx.", "...xxx"],
    }


def test_of_equals_the_latest_is_held() -> None:
    assert served([[0, 1], [0, 1]], 1)["static_last"] == ["..", ".x"]


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=12), min_size=1, max_size=6))
def test_no_set_beats_hindsight_in_any_period(rows: list[list[int]]) -> None:
    for room in (1, 3):
        hits = served(rows, room)
        for place in range(len(rows)):
            best = hits["static_hindsight"][place].count("x")
            assert hits["static_last"][place].count("x") <= best
            assert hits["static_all"][place].count("x") <= best


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=12), min_size=1, max_size=6))
def test_a_cache_that_is_emptied_hits_no_more_than_one_that_is_not(rows: list[list[int]]) -> None:
    item, periods = hourly(rows)
    cold: Flags = lru_cold(item, periods, 3)
    assert np.all(cold <= lru(item.tolist(), 3).hits)
    again = [lru(row, 3).hits.tolist() for row in rows]
    assert cold.tolist() == [hit for row in again for hit in row]
