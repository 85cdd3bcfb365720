"""When the DAGs run and which day a run is for, from the configuration alone."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

from airflow.sdk import CronPartitionTimetable

from warmup_lib.config import Config
from warmup_lib.errors import ConfigError, InputDataError

DAY_FORMAT = "%Y-%m-%d"
VALIDATE_BEFORE = timedelta(minutes=30)
_DAY = 24 * 60


def nightly(config: Config) -> CronPartitionTimetable:
    """Return the timetable of the nightly plan; a run's key is the day before it."""
    return _timetable(config, _nightly_minute(config), run_offset=-1)


def validate(config: Config) -> CronPartitionTimetable:
    """Return the timetable of the validation: half an hour before the nightly plan.

    By then the day's traffic is complete, and the targets still hold what was planned for it.
    The nightly run replaces both the plan and what the targets hold.
    """
    before = int(VALIDATE_BEFORE.total_seconds() // 60)
    return _timetable(config, max(0, _nightly_minute(config) - before), run_offset=-1)


def prepeak(config: Config) -> CronPartitionTimetable:
    """Return the timetable of the pre-peak plan; a run's key is its own day."""
    lead = int(config.schedule.lead.total_seconds() // 60)
    return _timetable(config, (config.schedule.peak_hour * 60 - lead) % _DAY, run_offset=0)


def day_of(run: Any, asked: str | None, config: Config, back: int) -> str:
    """Return the log day of a run: its partition key, else the day asked for, else by the clock.

    A scheduled run goes by the clock alone. Its key says the same but for one night a year: where
    the clock skips the hour that a run was due in, Airflow gives it the key of its own day instead
    of the day before (seen in 3.3.2), and a day would never be planned from.

    Args:
        run: Airflow's DAG run; manual runs and those of `dags test` have no partition key.
        asked: The form's `day`.
        config: Gives the zone in which days begin.
        back: Days before the local date of the run where the clock decides.

    Raises:
        InputDataError: The key or the form does not hold a day.
    """
    named = None if run.run_type == "scheduled" else run.partition_key or asked
    if named is None:
        return (config.local_day(run.run_after) - timedelta(days=back)).isoformat()
    try:
        return date.fromisoformat(named).isoformat()
    except ValueError:
        raise InputDataError(f"'{named[:32]}' is not a day such as 2026-03-14") from None


def _nightly_minute(config: Config) -> int:
    cron = re.fullmatch(r"(\d{1,2}) (\d{1,2}) \* \* \*", config.schedule.nightly.strip())
    if cron and int(cron[1]) < 60 and int(cron[2]) < 24:
        return int(cron[2]) * 60 + int(cron[1])
    raise ConfigError(
        f"schedule.nightly is '{config.schedule.nightly}', but a plan is made once a day: "
        "write minute and hour only, such as `0 2 * * *`"
    )


def _timetable(config: Config, minute_of_day: int, *, run_offset: int) -> CronPartitionTimetable:
    hour, minute = divmod(minute_of_day, 60)
    return CronPartitionTimetable(
        f"{minute} {hour} * * *",
        timezone=config.timezone,
        run_offset=run_offset,
        key_format=DAY_FORMAT,
    )
