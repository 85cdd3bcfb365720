"""Traces in order, and periods of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.errors import InputDataError
from warmup_lib.forecast.trace import MAX_PERIODS, check_periods, periods_of, trace_of

HOUR = timedelta(hours=1)


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1e6)


def test_accesses_are_sorted_and_items_numbered_by_first_appearance() -> None:
    trace = trace_of(
        np.array([30, 10, 20, 10]),
        np.array([7, 900, 7, 5]),
        np.array([1.0, 2.0, 3.0, 4.0]),
        np.array([5.0, 6.0, 7.0, 8.0]),
    )
    assert trace.at.tolist() == [10, 10, 20, 30]
    assert trace.item.tolist() == [0, 1, 2, 2]
    assert trace.cost_ms is not None
    assert trace.cost_ms.tolist() == [2.0, 4.0, 3.0, 1.0]
    assert trace.size_bytes is not None
    assert trace.size_bytes.tolist() == [6.0, 8.0, 7.0, 5.0]
    assert (trace.accesses, trace.items, trace.rows_read) == (4, 3, 4)


def test_a_trace_of_nothing_is_refused() -> None:
    with pytest.raises(InputDataError, match="no access"):
        trace_of(np.empty(0, np.int64), np.empty(0, np.int64))


def test_periods_are_hours_of_the_clock_and_empty_ones_are_left_out() -> None:
    at = np.array([micros(t) for t in ("2026-03-16T09:59", "2026-03-16T10:00", "2026-03-16T13:30")])
    periods = periods_of(at, HOUR)
    assert periods.number.tolist() == [0, 1, 4]
    assert periods.spans() == [(0, 1), (1, 2), (2, 3)]
    assert periods.begins_at.tolist() == [
        micros(t) for t in ("2026-03-16T09:00", "2026-03-16T10:00", "2026-03-16T13:00")
    ]


def test_days_begin_at_midnight_of_the_zone() -> None:
    at = np.array([micros("2026-03-16T15:59"), micros("2026-03-16T16:00")])
    periods = periods_of(at, timedelta(days=1), ZoneInfo("Asia/Shanghai"))
    assert len(periods) == 2
    assert periods.begins_at[1] == micros("2026-03-16T16:00")


def test_a_period_of_nothing_is_refused() -> None:
    with pytest.raises(InputDataError, match="longer than zero"):
        periods_of(np.array([0]), timedelta(0))


def test_periods_that_are_too_many_are_refused_with_a_length_that_will_do() -> None:
    second = 10**6
    few = trace_of(np.arange(MAX_PERIODS) * second, np.zeros(MAX_PERIODS, np.int64))
    check_periods(few, 10, timedelta(seconds=1))
    many = trace_of(np.arange(MAX_PERIODS + 1) * second, np.zeros(MAX_PERIODS + 1, np.int64))
    with pytest.raises(InputDataError, match=r"20,001 periods .* 20,000 .* --period 1m or longer"):
        check_periods(many, 10, timedelta(seconds=1))
    # Plans of 20,000 items at most 1,250 times; 6,000 s are 1,200 periods of 5 s.
    wide = trace_of(np.arange(20_000) * second * 3 // 10, np.arange(20_000))
    check_periods(wide, 10, timedelta(seconds=1))
    check_periods(wide, 20_000, timedelta(seconds=5))
    check_periods(wide, 10**9, timedelta(seconds=5))
    with pytest.raises(InputDataError, match=r"6,000 periods .* 1,250 .* --period 1m or longer"):
        check_periods(wide, 10**9, timedelta(seconds=1))


def test_a_length_is_proposed_that_is_longer_than_the_one_refused() -> None:
    hourly = trace_of(np.arange(30_000) * 3600 * 10**6, np.arange(30_000))
    with pytest.raises(InputDataError, match=r"30,000 periods .* 833 .* --period 7d or longer"):
        check_periods(hourly, 30_000, timedelta(minutes=7))
    yearly = trace_of(np.arange(7_000) * 86400 * 10**6 * 366 % (2**52), np.arange(7_000))
    check_periods(yearly, 1, timedelta(days=1))


@given(
    st.lists(st.integers(0, 10**13), min_size=1, max_size=50), st.integers(1, 200), st.booleans()
)
def test_periods_hold_every_access_once(times: list[int], minutes: int, shanghai: bool) -> None:
    at = np.sort(np.array(times, np.int64))
    zone = ZoneInfo("Asia/Shanghai" if shanghai else "UTC")
    periods = periods_of(at, timedelta(minutes=minutes), zone)
    spans = periods.spans()
    assert [i for a, b in spans for i in range(a, b)] == list(range(len(at)))
    for (a, b), begins in zip(spans, periods.begins_at.tolist(), strict=True):
        assert np.all((at[a:b] >= begins) & (at[a:b] < begins + periods.length))
