from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.ingest.outcome import Reason, Rejected
from warmup_lib.ingest.times import Clock

AS_OF = datetime(2026, 3, 15, 12, tzinfo=UTC)
AT = datetime(2026, 3, 14, 2, 30, tzinfo=UTC)


def read(value: Any, zone: Any = None) -> datetime:
    return Clock(ZoneInfo("Asia/Shanghai"), AS_OF).read(value, "ts", zone)


@pytest.mark.parametrize(
    "value",
    [
        "2026-03-14T02:30:00Z",
        "2026-03-14t02:30:00z",
        "2026-03-14 02:30:00+00:00",
        "2026-03-14T10:30:00+08:00",
        "2026-03-14T10:30:00.000000000+08:00",
        "2026-03-14T10:30:00",  # no zone: taken in the configured one
        "20260314T023000Z",
        " 2026-03-14T02:30Z ",
        1773455400,
        1773455400.0,
        "1773455400",
        "1773455400.0",
        1773455400_000,
        "1773455400000",
        1773455400_000_000,
        1773455400_000_000_000,
        AT,
        datetime(2026, 3, 14, 10, 30),  # noqa: DTZ001 - as a Parquet column without zone gives it
        AT.astimezone(timezone(timedelta(hours=-5))),
    ],
)
def test_one_moment_in_every_form(value: Any) -> None:
    assert read(value) == AT
    assert read(value).tzinfo is UTC


def test_a_dialect_may_state_the_zone_of_its_times() -> None:
    clock = Clock(ZoneInfo("Asia/Shanghai"), AS_OF)
    assert clock.read("2026-03-14T02:30:00", "ts", UTC) == AT
    assert clock.without_zone == 0
    clock.read("2026-03-14T02:30:00", "ts")
    clock.read("2026-03-14T02:30:00Z", "ts")
    assert clock.without_zone == 1


@settings(deadline=None)
@given(st.datetimes(datetime(2000, 1, 2), datetime(2026, 3, 16)))  # noqa: DTZ001
def test_the_unit_of_an_epoch_is_told_by_its_magnitude(naive: datetime) -> None:
    at = naive.replace(tzinfo=UTC)
    micros = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert read(micros) == at
    assert read(micros * 1000 + 999) == at
    assert read(micros // 1000) == at - timedelta(microseconds=micros % 1000)
    assert read(micros // 10**6) == at - timedelta(microseconds=micros % 10**6)
    assert abs(read(micros / 10**6) - at) <= timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, Reason.MISSING_FIELD),
        ("", Reason.MISSING_FIELD),
        (True, Reason.WRONG_TYPE),
        ([], Reason.WRONG_TYPE),
        ("yesterday", Reason.BAD_TIMESTAMP),
        ("2026-03-14", Reason.BAD_TIMESTAMP),
        ("2026-02-30T10:00:00Z", Reason.BAD_TIMESTAMP),
        ("2026-03-14T25:00:00Z", Reason.BAD_TIMESTAMP),
        ("1999-12-31T23:59:59Z", Reason.BAD_TIMESTAMP),
        (0, Reason.BAD_TIMESTAMP),
        (-1, Reason.BAD_TIMESTAMP),
        (20260314, Reason.BAD_TIMESTAMP),
        (1e300, Reason.BAD_TIMESTAMP),
        ("0001-01-01T00:00:00+14:00", Reason.BAD_TIMESTAMP),
        ("2026-03-16T12:00:01Z", Reason.FUTURE_TIMESTAMP),
        ("9999-12-31T23:59:59-14:00", Reason.BAD_TIMESTAMP),
        ("2099-01-01T00:00:00Z", Reason.FUTURE_TIMESTAMP),
    ],
)
def test_what_is_no_usable_time(value: Any, reason: Reason) -> None:
    with pytest.raises(Rejected) as verdict:
        read(value)
    assert (verdict.value.reason, verdict.value.field) == (reason, "ts")


def test_a_day_ahead_is_a_clock_that_is_off() -> None:
    assert read("2026-03-16T12:00:00Z") == AS_OF + timedelta(days=1)
