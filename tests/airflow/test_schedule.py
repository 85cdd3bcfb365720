from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from warmup_lib.config import Config
from warmup_lib.errors import ConfigError, InputDataError

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_home")]


def runs(timetable: Any, zone: str, first: datetime, last: datetime) -> list[tuple[str, str]]:
    """Return the local time and the key of each scheduled run."""
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.base import DagRunInfo, TimeRestriction

    core = coerce_to_core_timetable(timetable)
    found: list[tuple[str, str]] = []
    info: DagRunInfo | None = None
    import pendulum

    restriction = TimeRestriction(pendulum.instance(first), pendulum.instance(last), catchup=True)
    while info := core.next_dagrun_info_v2(last_dagrun_info=info, restriction=restriction):
        at = info.run_after.astimezone(ZoneInfo(zone))
        found.append((f"{at:%Y-%m-%d %H:%M}", info.partition_key))
    return found


def test_a_nightly_run_is_for_the_day_before_in_the_configured_zone() -> None:
    from warmup_lib.airflow.schedule import nightly

    config = Config(timezone="Asia/Shanghai")
    found = runs(
        nightly(config),
        "Asia/Shanghai",
        datetime(2026, 5, 31, 12, tzinfo=UTC),
        datetime(2026, 6, 2, 12, tzinfo=UTC),
    )
    assert found == [("2026-06-01 02:00", "2026-05-31"), ("2026-06-02 02:00", "2026-06-01")]


def test_no_day_is_lost_or_doubled_when_clocks_change() -> None:
    from warmup_lib.airflow.schedule import day_of, nightly

    # In New York the clock goes from 02:00 to 03:00 on 8 March 2026: 02:00 does not exist.
    config = Config(timezone="America/New_York")
    zone = ZoneInfo("America/New_York")
    found = runs(
        nightly(config),
        "America/New_York",
        datetime(2026, 3, 7, 0, tzinfo=UTC),
        datetime(2026, 3, 10, 12, tzinfo=UTC),
    )
    assert [at for at, _ in found] == [
        "2026-03-07 02:00",
        "2026-03-08 03:00",
        "2026-03-09 02:00",
        "2026-03-10 02:00",
    ]
    days = [
        day_of(
            run("scheduled", datetime.fromisoformat(at).replace(tzinfo=zone), key), None, config, 1
        )
        for at, key in found
    ]
    assert days == ["2026-03-06", "2026-03-07", "2026-03-08", "2026-03-09"]


def test_a_prepeak_run_is_for_its_own_day() -> None:
    from warmup_lib.airflow.schedule import prepeak

    config = Config.model_validate({"timezone": "Asia/Shanghai", "schedule": {"peak_hour": 9}})
    found = runs(
        prepeak(config),
        "Asia/Shanghai",
        datetime(2026, 6, 1, 0, tzinfo=UTC),
        datetime(2026, 6, 1, 12, tzinfo=UTC),
    )
    assert found == [("2026-06-01 08:30", "2026-06-01")]


@pytest.mark.parametrize(
    ("peak", "lead", "cron"), [(10, "30m", "30 9"), (0, "45m", "15 23"), (8, "2h", "0 6")]
)
def test_the_lead_is_taken_off_the_peak_hour(peak: int, lead: str, cron: str) -> None:
    from warmup_lib.airflow.schedule import prepeak

    config = Config.model_validate({"schedule": {"peak_hour": peak, "lead": lead}})
    assert prepeak(config).expression == f"{cron} * * *"


@pytest.mark.parametrize(
    ("nightly", "cron"),
    [("0 2 * * *", "30 1"), ("15 3 * * *", "45 2"), ("10 0 * * *", "0 0"), ("30 0 * * *", "0 0")],
)
def test_validation_comes_before_the_plan_it_would_lose(nightly: str, cron: str) -> None:
    from warmup_lib.airflow.schedule import validate

    config = Config.model_validate({"schedule": {"nightly": nightly}})
    assert validate(config).expression == f"{cron} * * *"


@pytest.mark.parametrize(
    "cron", ["0 2 * * 1", "0 2,14 * * *", "*/5 * * * *", "0 24 * * *", "", "x"]
)
def test_a_nightly_time_that_is_not_once_a_day_is_refused(cron: str) -> None:
    from warmup_lib.airflow.schedule import nightly

    with pytest.raises(ConfigError, match=r"once a day: write minute and hour only"):
        nightly(Config.model_validate({"schedule": {"nightly": cron}}))


def run(kind: str, at: datetime, key: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(run_type=kind, run_after=at, partition_key=key)


LATE = datetime(2026, 6, 1, 17, 30, tzinfo=UTC)  # 01:30 on 2 June in Shanghai


@pytest.mark.parametrize(
    ("kind", "key", "asked", "back", "day"),
    [
        ("manual", "2026-05-01", "2026-05-02", 1, "2026-05-01"),
        ("manual", None, "2026-05-02", 1, "2026-05-02"),
        ("manual", None, None, 1, "2026-06-01"),
        ("manual", None, None, 0, "2026-06-02"),
        ("backfill", "2026-05-01", None, 1, "2026-05-01"),
        ("scheduled", "2026-06-01", None, 1, "2026-06-01"),
        ("scheduled", "2026-06-02", None, 0, "2026-06-02"),
    ],
)
def test_the_day_is_the_key_else_the_form_else_the_clock(
    kind: str, key: str | None, asked: str | None, back: int, day: str
) -> None:
    from warmup_lib.airflow.schedule import day_of

    config = Config(timezone="Asia/Shanghai")
    assert day_of(run(kind, LATE, key), asked, config, back) == day


@pytest.mark.parametrize("named", ["yesterday", "2026-02-30", "2026-06-01T02:00:00"])
def test_what_is_no_day_is_refused(named: str) -> None:
    from warmup_lib.airflow.schedule import day_of

    with pytest.raises(InputDataError, match="is not a day"):
        day_of(run("manual", LATE, named), None, Config(), 1)
