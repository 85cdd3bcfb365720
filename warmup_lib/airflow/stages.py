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
from warmup_lib.airflow.settings import enabled_layers, load_dag_config, task_config

log = logging.getLogger(__name__)

SHORT_HORIZON = ("adapters", "prefixes")
"""Layers worth warming just before they are needed: what a target keeps for minutes, and the
adapters, without which it would have the heads of other weights."""


def run_day(back: int = 1) -> str:
    """Return the log day of the running DAG run.

    Args:
        back: Days before the run where neither a partition key nor the form names a day.
    """
    context: Any = get_current_context()
    return day_of(context["dag_run"], context["params"].get("day"), load_dag_config(), back)


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
    """Fold the requests of each new or changed day up to `day` into distinct prompts.

    Raises:
        InputDataError: The lake has no requests of `day`.
    """
    from warmup_lib.airflow.days import stale_days

    days = stale_days(task_config(), day)
    log.info("days to distil: %s", ", ".join(days) or "none")
    return _days("distil", day, days)


def distil_newest(day: str) -> Facts:
    """Do the same up to the newest day that has requests, which is the fact `day`."""
    from warmup_lib.airflow.days import newest_day

    return distil(newest_day(task_config(), day))


def embed(day: str) -> Facts:
    """Embed the texts of the history up to `day` that have no vector yet.

    Every day of it is looked at, not only what was just distilled: a run that was stopped between
    the two, or a pre-peak run, which does not embed, leaves texts behind.
    """
    from warmup_lib.airflow.days import history

    return _days("embed", day, history(task_config(), day))


def day_stage(name: str, day: str) -> Facts:
    """Run one stage that replaces its partition of `day`."""
    from warmup_lib import pipeline

    return told(pipeline.day_stage(name, task_config(), day, LogProgress()))


def plan(
    day: str,
    kind: str,
    *,
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
        force=force,
        layers=layers,
        tenants=tenants,
        models=models,
        progress=LogProgress(),
    )
    facts = told(report)
    announce(PLAN, day, facts)
    return facts


def prepeak_plan(day: str) -> Facts:
    """Plan the layers that last only minutes, whatever the current plan.

    Raises:
        InputDataError: None of them is switched on.
    """
    enabled = enabled_layers(load_dag_config())
    layers = [name for name in SHORT_HORIZON if name in enabled]
    return plan(day, "prepeak", force=True, layers=layers)


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
    """Warm a plan; a retry warms only what the tries before it left.

    A plan that still serves is warmed again as a whole: what is resident now may run out before
    the next run, and only writing it again renews its lifetime.

    Args:
        planned: What `plan` told.
        targets: Only these; None or none: all.

    Raises:
        TargetUnavailable: A target was down; its receipts tell what was done.
    """
    from warmup_lib import pipeline

    context: Any = get_current_context()
    if planned["decision"] == "wait":
        log.info("the current plan still serves: it is warmed again to renew its lifetimes")
    report = pipeline.apply(
        task_config(targets),
        planned["plan_id"],
        resume=context["ti"].try_number > 1,
        progress=LogProgress(),
    )
    facts = told(report)
    check_targets(report.facts)
    return facts


def verify(
    day: str, plan_id: str, *, later: str | None = None, targets: Sequence[str] | None = None
) -> Facts:
    """Prove residency and, where later traffic is named, measure and explain what it missed.

    Args:
        day: The run's log day, under which warmth is announced.
        plan_id: The plan.
        later: A day of the lake.
        targets: Only these; None or none: all.

    Raises:
        TargetUnavailable: A target was down.
        GateFailed: What was measured is below its gate.
    """
    from warmup_lib import pipeline

    config = task_config(targets)
    report = pipeline.verify(config, plan_id, day=later, progress=LogProgress())
    facts = told(report)
    check_targets(report.facts)
    if later is not None:
        # Before the gates: a plan that failed one is what has to be explained.
        why = told(pipeline.explain(config, plan_id, day=later, progress=LogProgress()))
        facts = Facts(facts | {name: why[name] for name in ("misses", "causes", "unknown_share")})
    check_gates(report.facts)
    announce(WARMTH, day, facts)
    return facts


def validate(day: str, plan_id: str | None) -> Facts:
    """Verify a plan on the traffic of `day`: the plan asked for, else the one made for that day.

    Raises:
        InputDataError: No plan was made before `day`.
    """
    from warmup_lib import pipeline
    from warmup_lib.airflow.days import plan_for

    config = task_config()
    chosen = plan_id or plan_for(config, day)
    later = day if day in pipeline.open_lake(config).days("requests") else None
    if later is None:
        log.info("the lake has no requests of %s: only residency is proven", day)
    return verify(day, chosen, later=later)


def _days(stage: str, day: str, days: Sequence[str]) -> Facts:
    from warmup_lib import pipeline

    config = task_config()
    done = [told(pipeline.day_stage(stage, config, one, LogProgress())) for one in days]
    return Facts(
        {
            "stage": stage,
            "day": day,
            "days": list(days),
            "rows_in": sum(f["rows_in"] for f in done),
            "rows_out": sum(f["rows_out"] for f in done),
        }
    )
