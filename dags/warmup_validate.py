"""Check a plan against the traffic it was made for.

**When:** once a night, half an hour before `schedule.nightly`, and by hand. By then the day's
traffic is complete and the targets still hold what was planned for it; the nightly run replaces
both. The run's partition key is the day of the traffic, the day before the run. The day's logs must
be in the inbox by then.

**What it does:** takes in the inbox, then verifies the plan that served that day:
what is resident, which share of the day's requests the warmed entries serve, and why the others
missed (table `causes`, `docs/causes.md`). A day without requests proves residency alone.

**It fails**, without a retry, where completion or hit ratio is below its gate (`gates` in the
configuration): the failed run is the finding. Only a target that is down is tried again.

**A rerun** reads the targets again; it never makes a missing item resident.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param, dag, task

from warmup_lib.airflow import stages
from warmup_lib.airflow.assets import WARMTH
from warmup_lib.airflow.report import Facts
from warmup_lib.airflow.retry import DEFAULT_ARGS
from warmup_lib.airflow.schedule import validate as timetable
from warmup_lib.airflow.settings import load_dag_config

CONFIG = load_dag_config()


@dag(
    schedule=timetable(CONFIG),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    params={
        "plan_id": Param(None, type=["null", "string"], title="Plan (empty: the day's own)"),
        "day": Param(None, type=["null", "string"], format="date", title="Day of the traffic"),
    },
    doc_md=__doc__,
    tags=["warmup", "check"],
)
def warmup_validate() -> None:
    """Take in the day's traffic and verify the plan that was made for it."""

    @task
    def ingest() -> Facts:
        """Read the inbox into the lake."""
        return stages.ingest()

    @task(outlets=[WARMTH])
    def validate(params: dict[str, Any]) -> Facts:
        """Measure what is resident, the hit ratio and the causes; fail below the gates."""
        return stages.validate(stages.run_day(), params["plan_id"])

    ingest() >> validate()


warmup_validate()
