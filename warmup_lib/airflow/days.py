"""What a run asks the lake before it works: which days are there or changed, and which plan."""

from __future__ import annotations

from warmup_lib import pipeline
from warmup_lib.airflow.settings import enabled_layers
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


def history(config: Config, day: str) -> list[str]:
    """Return the days with requests within the lookback that ends with `day`.

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
    return pipeline.history_days(lake, config, day)


def stale_days(config: Config, day: str) -> list[str]:
    """Return the days of the history up to `day` whose prompts are missing or outdated.

    Raises:
        InputDataError: The lake has no requests of `day` itself.
    """
    lake = pipeline.open_lake(config)
    return [d for d in history(config, day) if pipeline.is_stale(lake, d)]


def plan_for(config: Config, day: str) -> str:
    """Return the plan that served `day`: the newest one for everything, of an earlier log day.

    Raises:
        InputDataError: There is none.
    """
    from warmup_lib.plan.current import current_plan

    found = current_plan(
        pipeline.open_lake(config),
        day,
        layers=enabled_layers(config),
        scope={"tenants": None, "models": None},
    )
    if found is None:
        raise InputDataError(f"no plan was made from the days before {day}: there is none to check")
    return found
