"""The bodies of the DAGs' tasks: read the run's context, call one stage, tell what came out.

Every function returns a small dict of counts and ids, which is what XCom holds. Rooms that read
the lake or talk to a target are imported inside the functions.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import get_current_context

from warmup_lib.airflow.assets import PLAN, WARMTH
from warmup_lib.airflow.report import (
    Facts,
    LogProgress,
    announce,
    check_gates,
    check_targets,
    told,
)
from warmup_lib.airflow.schedule import day_of
from warmup_lib.airflow.settings import load_dag_config, task_config

log = logging.getLogger(__name__)


def run_day(back: int = 1) -> str:
    """Return the log day of the running DAG run.

    Args:
        back: Days before the run where neither a partition key nor the form names a day.
    """
    context: Any = get_current_context()
    run = context["dag_run"]
    return day_of(
        partition_key=run.partition_key,
        asked=context["params"].get("day"),
        run_after=run.run_after,
        config=load_dag_config(),
        back=back,
    )


def ingest() -> Facts:
    """Read the inbox into the lake; rows that are there already add nothing."""
    from warmup_lib import pipeline
    from warmup_lib.airflow.inbox import inbox_files

    config = task_config()
    files = inbox_files(config.schedule.inbox)
    if not files:
        log.info("no files in the inbox (%s): the lake stays as it is", config.schedule.inbox)
        return Facts({"stage": "ingest", "files": 0, "rows_in": 0, "rows_out": 0})
    report = pipeline.ingest(config, files, config.schedule.inbox_format, LogProgress())
    return Facts(told(report) | {"files": len(files)})


def distil(day: str) -> Facts:
    """Fold the requests of each new or changed day up to `day` into distinct prompts."""
    from warmup_lib import pipeline

    config = task_config()
    days = pipeline.stale_days(config, day)
    log.info("days to distil: %s", ", ".join(days) or "none")
    return _days("distil", days)


def embed(day: str, distilled: Facts) -> Facts:
    """Embed the texts of the days that were distilled, and of `day`, that have no vector yet."""
    return _days("embed", sorted({day, *distilled["days"]}))


def day_stage(name: str, day: str) -> Facts:
    """Run one stage that replaces its partition of `day`."""
    from warmup_lib import pipeline

    return told(pipeline.day_stage(name, task_config(), day, LogProgress()))


def plan(
    day: str,
    kind: str,
    *,
    strategy: str = "full",
    force: bool = False,
    layers: Sequence[str] | None = None,
    tenants: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> Facts:
    """Choose what to warm after `day`; None selects all."""
    from warmup_lib import pipeline

    report = pipeline.plan(
        task_config(),
        day,
        kind=kind,
        strategy=strategy,
        force=force,
        layers=layers,
        tenants=tenants,
        models=models,
        progress=LogProgress(),
    )
    facts = told(report)
    announce(PLAN, facts)
    return facts


def launch_plan(day: str, form: Mapping[str, Any]) -> Facts:
    """Plan for what the launch form selects, whatever the current plan."""
    return plan(
        day,
        "launch",
        force=True,
        layers=form["layers"] or None,
        tenants=form["tenants"] or None,
        models=[form["model"]] if form["model"] else None,
    )


def apply(planned: Facts, *, targets: Sequence[str] | None = None) -> Facts:
    """Warm a plan. Where the current plan still serves, or on a retry, only what is missing.

    Raises:
        TargetUnavailable: A target was down; its receipts tell what was done.
    """
    from warmup_lib import pipeline

    context: Any = get_current_context()
    waits = planned["decision"] == "wait"
    if waits:
        log.info("the current plan still serves: renewing what has left the targets")
    report = pipeline.apply(
        task_config(),
        planned["plan_id"],
        targets=targets or None,
        resume=waits or context["ti"].try_number > 1,
        progress=LogProgress(),
    )
    facts = told(report)
    check_targets(facts)
    return facts


def verify(plan_id: str, *, day: str | None = None) -> Facts:
    """Prove residency and, where `day` has later traffic, measure the hit ratio on it.

    Raises:
        TargetUnavailable: A target was down.
        GateFailed: What was measured is below its gate.
    """
    from warmup_lib import pipeline

    facts = told(pipeline.verify(task_config(), plan_id, day=day, progress=LogProgress()))
    check_targets(facts)
    check_gates(facts)
    announce(WARMTH, facts)
    return facts


def validate(day: str, plan_id: str | None) -> Facts:
    """Verify a plan on the traffic of `day`: the plan asked for, else the one made for that day.

    Raises:
        InputDataError: No plan was made before `day`.
    """
    from warmup_lib import pipeline

    config = task_config()
    chosen = plan_id or pipeline.plan_for(config, day)
    later = day if day in pipeline.open_lake(config).days("requests") else None
    if later is None:
        log.info("the lake has no requests of %s: only residency is proven", day)
    return verify(chosen, day=later)


def _days(stage: str, days: Sequence[str]) -> Facts:
    from warmup_lib import pipeline

    config = task_config()
    done = [told(pipeline.day_stage(stage, config, day, LogProgress())) for day in days]
    return Facts(
        {
            "stage": stage,
            "days": list(days),
            "rows_in": sum(f["rows_in"] for f in done),
            "rows_out": sum(f["rows_out"] for f in done),
        }
    )
