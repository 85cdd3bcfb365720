"""What a run asks the lake before it works: which days are there or changed, and which plan."""

from __future__ import annotations

from datetime import date

from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError


def newest_day(config: Config, day: str) -> str:
    """Return the newest day on or before `day` that has requests.

    Raises:
        InputDataError: There is none.
    """
    days = [d for d in pipeline.open_lake(config).days("requests") if d <= day]
    if not days:
        raise InputDataError(
            f"the lake has no requests up to {day}: fill the inbox, or ingest logs"
        )
    return days[-1]


def stale_days(config: Config, day: str) -> list[str]:
    """Return the days of the history up to `day` whose prompts are missing or outdated.

    Raises:
        InputDataError: The lake has no requests of `day` itself.
    """
    lake = pipeline.open_lake(config)
    days = lake.days("requests")
    if day not in days:
        raise InputDataError(
            f"the lake has no requests of {day}: its logs were not in the inbox yet"
            + (f" (the newest day is {days[-1]})" if days else "")
        )
    first = (date.fromisoformat(day) - config.forecast.lookback).isoformat()
    return [d for d in days if first < d <= day and pipeline.is_stale(lake, d)]


def plan_before(config: Config, day: str) -> str:
    """Return the newest nightly plan made from days before `day`.

    Raises:
        InputDataError: There is none.
    """
    lake = pipeline.open_lake(config)
    found = []
    for partition in lake.partitions("plan"):
        manifest = lake.manifest("plan", partition)
        meta = manifest.meta if manifest else {}
        if meta.get("kind") == "nightly" and meta["day"] < day:
            found.append((meta["day"], partition["plan_id"]))
    if not found:
        raise InputDataError(f"no nightly plan was made from days before {day}: nothing to check")
    return max(found)[1]
