"""Warm what lasts only minutes, shortly before the daily peak.

**When:** every day, `schedule.lead` (30 minutes) before `schedule.peak_hour` (10) in the configured
zone. The run's partition key is its own day.

**What it does:** takes in the logs up to now, plans the short-horizon layers alone (shared heads,
which a model host's KV cache keeps for minutes, and the adapters they need) and warms them. Where
the inbox has nothing of today yet, it plans from the newest day there is. The nightly plan is left
as it is. The run goes before a nightly run that is still at work, and is stopped at the peak:
warming under peak load would take from the requests it is meant to help.

**Needs:** what `warmup_nightly` needs.

**A rerun** is safe and useful as often as wanted: it plans again from the logs up to then.
"""

from __future__ import annotations

from airflow.sdk import Param, dag, task

from warmup_lib.airflow import stages
from warmup_lib.airflow.assets import PLAN, WARMTH
from warmup_lib.airflow.report import Facts
from warmup_lib.airflow.retry import DEFAULT_ARGS
from warmup_lib.airflow.schedule import prepeak
from warmup_lib.airflow.settings import gpu_task, load_dag_config

CONFIG = load_dag_config()
GPU = gpu_task(CONFIG)


@dag(
    schedule=prepeak(CONFIG),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=CONFIG.schedule.lead,
    default_args={**DEFAULT_ARGS, "priority_weight": 100, "weight_rule": "absolute"},
    params={"day": Param(None, type=["null", "string"], format="date", title="Last log day")},
    doc_md=__doc__,
    tags=["warmup", "plan"],
)
def warmup_prepeak() -> None:
    """Take in today's logs so far and warm the short-horizon layers."""

    @task
    def ingest() -> Facts:
        """Read the inbox into the lake."""
        return stages.ingest()

    @task
    def distil() -> Facts:
        """Fold each new or changed day, today among them, into distinct prompts and heads."""
        return stages.distil_newest(stages.run_day(back=0))

    @task
    def forecast(distilled: Facts) -> Facts:
        """Turn past requests into expected ones."""
        return stages.day_stage("forecast", distilled["day"])

    @task(outlets=[PLAN])
    def plan(distilled: Facts) -> Facts:
        """Choose the heads to warm."""
        return stages.prepeak_plan(distilled["day"])

    @task(**GPU)
    def apply(planned: Facts) -> Facts:
        """Warm the heads on the model hosts."""
        return stages.apply(planned)

    @task(outlets=[WARMTH])
    def verify(planned: Facts) -> Facts:
        """Prove by looking that the heads are resident."""
        return stages.verify(stages.run_day(back=0), planned["plan_id"])

    distilled = distil()
    planned = plan(distilled)
    ingest() >> distilled
    forecast(distilled) >> planned
    apply(planned) >> verify(planned)


warmup_prepeak()
