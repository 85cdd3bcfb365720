"""Warm chosen targets before a launch: a new host group, a release, a campaign.

**When:** by hand. The form asks for the model, the targets, the tenants, the layers and the last
log day; what is left empty means all (and for the day: yesterday).

**What it does:** plans from the demand that the lake already knows, whatever the current plan, then
warms the chosen targets and proves it. With *Plan only* nothing is warmed: the plan can be looked
at first (`warmup plan diff` compares two).

**Needs:** a day that `warmup_nightly` or `warmup plan` has built; the targets' connections.

**A rerun** with the same form gives the same plan and warms it again.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import dag, task

from warmup_lib.airflow import stages
from warmup_lib.airflow.assets import PLAN, WARMTH
from warmup_lib.airflow.forms import launch_form, plans_only
from warmup_lib.airflow.report import Facts
from warmup_lib.airflow.retry import DEFAULT_ARGS
from warmup_lib.airflow.settings import gpu_task, load_dag_config

CONFIG = load_dag_config()
GPU = gpu_task(CONFIG)


@dag(
    schedule=None,
    max_active_runs=1,
    default_args={**DEFAULT_ARGS, "priority_weight": 200, "weight_rule": "absolute"},
    params=launch_form(CONFIG),
    doc_md=__doc__,
    tags=["warmup", "plan"],
)
def warmup_launch() -> None:
    """Plan for chosen models and tenants, warm chosen targets, prove it."""

    @task(outlets=[PLAN])
    def plan(params: dict[str, Any]) -> Facts:
        """Choose what to warm for the form's model, tenants and layers."""
        return stages.launch_plan(stages.run_day(), params)

    @task.skip_if(plans_only)
    @task(**GPU)
    def apply(planned: Facts, params: dict[str, Any]) -> Facts:
        """Warm the chosen targets."""
        return stages.apply(planned, targets=params.get("targets"))

    @task(outlets=[WARMTH])
    def verify(planned: Facts, params: dict[str, Any]) -> Facts:
        """Prove by looking that the plan's items are resident there."""
        return stages.verify(stages.run_day(), planned["plan_id"], targets=params.get("targets"))

    planned = plan()
    apply(planned) >> verify(planned)


warmup_launch()
