"""The stages in order, as the command line and the DAGs call them, and nothing else.

Every function takes what can be written down (a configuration, a day, a plan id), opens what it
needs, calls one stage and returns its report. Rooms are imported when a stage runs, so that
importing this module is cheap.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warmup_lib.config import Config, key_secret
from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport, silent

if TYPE_CHECKING:
    from warmup_lib.observe.figures import Figure
    from warmup_lib.threshold.stage import Show

_INGEST_WAIT_S = 3600.0
"""How long an ingest waits for another one to end."""

DAY_STAGES = ("distil", "documents", "embed", "forecast", "cluster")
"""The stages between `ingest` and `plan`; each replaces the partition of one day."""


def open_lake(config: Config) -> Lake:
    """Return the configured lake."""
    return Lake(config.lake)


def open_keys(config: Config, *, record: bool = False) -> Keys:
    """Return the key builder under the configured secret.

    Args:
        config: The settings.
        record: Pin secret and time zone to a lake that has none yet.

    Raises:
        ConfigError: The lake was filled under another secret, time zone or other dimensions: none
            of its digests or days would fit.
    """
    keys = Keys(key_secret(config), dimensions=config.key_dimensions)
    dimensions = config.model_dump(include={"dimensions"})["dimensions"]
    pinned = {"secret id": keys.secret_id, "time zone": config.timezone}
    pinned["dimensions"] = json.dumps(dimensions, sort_keys=True)
    open_lake(config).pin(pinned, record=record)
    return keys


def ingest(
    config: Config, files: Sequence[Path], dialect: str, progress: Progress = silent
) -> StageReport:
    """Read log files into `requests` and `quarantine`; one process at a time may."""
    from warmup_lib.apply.lock import LakeLock
    from warmup_lib.ingest.stage import run

    keys = open_keys(config, record=True)
    lake = open_lake(config)

    async def locked() -> StageReport:
        async with LakeLock(lake, "ingest", wait_s=_INGEST_WAIT_S):
            return await asyncio.to_thread(run, lake, files, dialect, config, keys, progress)

    return asyncio.run(locked())


def day_stage(name: str, config: Config, day: str, progress: Progress = silent) -> StageReport:
    """Run one of `DAY_STAGES` for one day."""
    from importlib import import_module

    stage = import_module(f"warmup_lib.{name}.stage")
    report: StageReport = stage.run(open_lake(config), day, config, progress)
    return report


def build_day(config: Config, day: str, progress: Progress = silent) -> list[StageReport]:
    """Run the stages up to the plan: distil and embed what is new or changed, then the day's own.

    A day of the history is distilled again only when its requests have changed since. Every day
    is embedded again, which encodes only texts that this encoder has never seen. The documents
    are read as they are now, for the day itself.

    Raises:
        InputDataError: The lake has no requests of `day`.
    """
    lake = open_lake(config)
    history = history_days(lake, config, day)
    if not history:
        raise InputDataError(
            f"no requests up to {day} in {config.lake}: `warmup ingest` them first"
        )
    if history[-1] != day:
        raise InputDataError(
            f"no requests of {day} in {config.lake} (there are {history[0]} to {history[-1]}): "
            f"`warmup ingest` that day's log, then `warmup plan --day {day}`"
        )
    reports = [day_stage("documents", config, day, progress)]
    for past in history:
        if is_stale(lake, past):
            reports.append(day_stage("distil", config, past, progress))
        reports.append(day_stage("embed", config, past, progress))
    return reports + [day_stage(name, config, day, progress) for name in ("forecast", "cluster")]


def history_days(lake: Lake, config: Config, day: str) -> list[str]:
    """Return the days with requests in the lookback that ends with `day`, oldest first."""
    first = (date.fromisoformat(day) - config.forecast.lookback).isoformat()
    return [d for d in lake.days("requests") if first < d <= day]


def is_stale(lake: Lake, day: str) -> bool:
    """Return whether a day's prompts are missing or older than its requests."""
    requests, prompts = (lake.manifest(t, {"day": day}) for t in ("requests", "prompts"))
    if requests is None:
        return False
    return prompts is None or prompts.meta.get("requests") != requests.content_digest()


def plan(
    config: Config,
    day: str,
    *,
    strategy: str = "full",
    since: str | None = None,
    layers: Sequence[str] | None = None,
    tenants: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    kind: str = "nightly",
    force: bool = False,
    progress: Progress = silent,
) -> StageReport:
    """Choose what to warm after `day`, or say that the current plan still serves.

    Before a nightly plan, thresholds are calibrated on the history where the settings say so.
    """
    from warmup_lib.plan.stage import run

    open_keys(config)
    lake = open_lake(config)
    before: tuple[str, ...] = ()
    if config.threshold.nightly and kind == "nightly":
        before = threshold(config, day, keep_labelled=True, progress=progress).notes
    report = run(
        lake,
        day,
        config,
        strategy=strategy,
        since=since,
        layers=layers,
        tenants=tenants,
        models=models,
        kind=kind,
        force=force,
        progress=progress,
    )
    lake.name_latest(report.facts["plan_id"])
    return replace(report, notes=(*before, *report.notes))


def threshold(
    config: Config,
    day: str | None = None,
    *,
    pairs: Path | None = None,
    keep_labelled: bool = False,
    show: Show | None = None,
    progress: Progress = silent,
) -> StageReport:
    """Calibrate thresholds on a file of pairs or on the history; in force from `day` on.

    Args:
        config: The settings.
        day: Last day read; None: the last one with requests.
        pairs: The file; None: the history.
        keep_labelled: Leave tenants alone whose threshold is from such a file.
        show: Given the texts of the nearest wrong hits.
        progress: Told how many texts are encoded.

    Raises:
        InputDataError: The lake has no requests and no day is given, or there are no pairs to read.
    """
    from warmup_lib.threshold.stage import run

    keys = open_keys(config)
    lake = open_lake(config)
    days = [day] if day is not None else lake.days("requests")
    if not days:
        wanted = "--day is needed, from which on it counts" if pairs else "ingest logs first"
        raise InputDataError(f"no requests in {config.lake}: {wanted}")
    return run(
        lake,
        days[-1],
        config,
        keys,
        pairs=pairs,
        keep_labelled=keep_labelled,
        show=show,
        progress=progress,
    )


def plan_named(config: Config, name: str) -> str:
    """Return a plan id: `name` itself, or for `latest` the one that planning named last.

    Raises:
        InputDataError: There is no plan yet.
    """
    if name != "latest":
        return name
    lake = open_lake(config)
    latest = lake.latest_plan() or ""
    if lake.manifest("plan", {"plan_id": latest}) is None:
        raise InputDataError(f"no plan in {config.lake}: `warmup plan --day DAY` makes one")
    return latest


def plan_diff(config: Config, a: str, b: str) -> dict[str, Any]:
    """Return what plan `b` added, kept and dropped against plan `a`."""
    from warmup_lib.plan.diff import diff

    return diff(open_lake(config), plan_named(config, a), plan_named(config, b))


def plan_compare(config: Config, a: str, b: str) -> dict[str, Any]:
    """Return what warming two plans took and what first tokens gained by it."""
    from warmup_lib.plan.compare import compare

    return compare(open_lake(config), plan_named(config, a), plan_named(config, b))


def apply(
    config: Config,
    plan_id: str,
    *,
    layers: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    resume: bool = False,
    progress: Progress = silent,
) -> StageReport:
    """Warm a plan's items on the configured targets."""
    from warmup_lib.apply.stage import run

    return _on_targets(
        "apply",
        run,
        config,
        plan_id,
        layers=layers,
        targets=targets,
        resume=resume,
        progress=progress,
    )


def verify(
    config: Config,
    plan_id: str,
    *,
    day: str | None = None,
    requests: Path | None = None,
    progress: Progress = silent,
) -> StageReport:
    """Prove residency and, where later traffic is given, measure the hit ratio on it."""
    from warmup_lib.verify.stage import run

    return _on_targets(
        "verify", run, config, plan_id, day=day, requests=requests, progress=progress
    )


def explain(
    config: Config,
    plan_id: str,
    *,
    day: str | None = None,
    requests: Path | None = None,
    progress: Progress = silent,
) -> StageReport:
    """Give each miss of later traffic its cause; see `verify`, which has to be run on it before."""
    from warmup_lib.explain.stage import run

    return _on_targets(
        "explain", run, config, plan_id, day=day, requests=requests, progress=progress
    )


def figures(config: Config, plan_id: str | None = None) -> list[Figure]:
    """Return a plan's figures as metrics; by default of the plan that was looked at last.

    Raises:
        InputDataError: There is no such plan, or none yet.
    """
    from warmup_lib.observe.figures import figures, newest_plan

    lake = open_lake(config)
    named = newest_plan(lake) if plan_id is None else plan_named(config, plan_id)
    if named is None or lake.manifest("plan", {"plan_id": named}) is None:
        raise InputDataError(f"no such plan in {config.lake}: `warmup plan --day DAY` makes one")
    return figures(lake, config, open_keys(config), named)


def _on_targets(
    stage: str,
    run: Callable[..., Coroutine[Any, Any, StageReport]],
    config: Config,
    plan_id: str,
    **how: Any,
) -> StageReport:
    """Run a stage that asks a plan's targets, and push what it did where that is wanted."""
    with _observed(config, stage, plan_id):
        return asyncio.run(run(open_lake(config), plan_id, config, open_keys(config), **how))


@contextmanager
def _observed(config: Config, stage: str, plan_id: str) -> Iterator[None]:
    """Push what a stage does, and the plan's figures after it, where the settings say whereto."""
    if not (config.observe.otlp or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")):
        yield
        return
    from warmup_lib.observe.publish import observed

    with observed(config.observe, stage, partial(figures, config, plan_id)):
        yield
