"""Choose and warm what the coming day needs, from the logs up to yesterday.

**When:** once a night at `schedule.nightly` (02:00) in the configured zone. The run's partition key
is its log day, the day before; a manual run may name one as key or in the form.

**What it does:** takes in the inbox, folds each new or changed day into distinct prompts, reads the
retrieval documents as they are now, embeds the texts that have no vector yet, forecasts demand,
groups the prompts into clusters, and asks whether the current plan still serves. A new plan is made
only when demand has drifted past `plan.drift_threshold` or a document has changed; otherwise the
decision is `wait`, and the current plan is warmed again, which renews its lifetimes. Then the run
proves by looking that the plan's items are resident.

**Needs:** `schedule.inbox` (without it the lake is used as it is), the pool and the queue named by
`schedule.gpu_pool` and `schedule.gpu_queue`, and the targets' connections.

**A rerun** of any task is safe: each stage replaces one partition, the same input gives the same
plan, and a retry of `apply` warms only what is missing. A target that is down is tried again; bad
input, bad settings and a failed gate are not.
"""

from __future__ import annotations

from airflow.sdk import Param, dag, task

from warmup_lib.airflow import stages
from warmup_lib.airflow.assets import PLAN, WARMTH
from warmup_lib.airflow.report import Facts
from warmup_lib.airflow.retry import DEFAULT_ARGS
from warmup_lib.airflow.schedule import nightly
from warmup_lib.airflow.settings import gpu_task, load_dag_config

CONFIG = load_dag_config()
GPU = gpu_task(CONFIG)


@dag(
    schedule=nightly(CONFIG),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    params={"day": Param(None, type=["null", "string"], format="date", title="Last log day")},
    doc_md=__doc__,
    tags=["warmup", "plan"],
)
def warmup_nightly() -> None:
    """Take in the logs, plan the coming day, warm it and prove it warm."""

    @task
    def ingest() -> Facts:
        """Read the inbox into the lake."""
        return stages.ingest()

    @task
    def distil() -> Facts:
        """Fold each new or changed day into distinct prompts."""
        return stages.distil(stages.run_day())

    @task
    def documents() -> Facts:
        """Read the retrieval documents; without any there is nothing to do."""
        return stages.day_stage("documents", stages.run_day())

    @task(**GPU)
    def embed() -> Facts:
        """Embed the texts that have no vector yet."""
        return stages.embed(stages.run_day())

    @task
    def forecast() -> Facts:
        """Turn past requests into expected ones."""
        return stages.day_stage("forecast", stages.run_day())

    @task
    def cluster() -> Facts:
        """Group the prompts, for people to read and to retrieve for."""
        return stages.day_stage("cluster", stages.run_day())

    @task(outlets=[PLAN])
    def plan() -> Facts:
        """Choose what to warm, or say that the current plan still serves."""
        return stages.plan(stages.run_day(), "nightly")

    @task(**GPU)
    def apply(planned: Facts) -> Facts:
        """Warm the plan's items on the targets."""
        return stages.apply(planned)

    @task(outlets=[WARMTH])
    def verify(planned: Facts) -> Facts:
        """Prove by looking that the plan's items are resident."""
        return stages.verify(stages.run_day(), planned["plan_id"])

    planned = plan()
    ingest() >> [distil(), documents()] >> embed() >> forecast() >> cluster() >> planned
    apply(planned) >> verify(planned)


warmup_nightly()
