from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.tables import PLAN, PROMPTS, REQUESTS

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_home")]

ALL = {"tenants": None, "models": None}
LAYERS = ["weights", "adapters", "embeddings", "responses", "prefixes"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with three days of (no) requests, of which the second is distilled."""
    made = Lake(f"file://{tmp_path}/lake")
    for day in ("2026-02-01", "2026-03-13", "2026-03-14"):
        requests = made.replace("requests", {"day": day}, REQUESTS.empty())
        if day == "2026-03-13":
            meta = {"requests": requests.content_digest()}
            made.replace("prompts", {"day": day}, PROMPTS.empty(), meta)
    return made


@pytest.fixture
def config(lake: Lake) -> Config:
    return Config(lake=lake.uri)


def add_plan(lake: Lake, plan_id: str, **meta: Any) -> None:
    known = {"day": plan_id[:10], "sequence": 1, "layers": LAYERS, "scope": ALL}
    lake.replace("plan", {"plan_id": plan_id}, PLAN.empty(), {**known, **meta})


def test_the_newest_day_is_the_last_one_with_requests(config: Config) -> None:
    from warmup_lib.airflow.days import newest_day

    assert newest_day(config, "2026-03-20") == "2026-03-14"
    assert newest_day(config, "2026-03-13") == "2026-03-13"
    with pytest.raises(InputDataError, match="no requests up to 2026-01-01"):
        newest_day(config, "2026-01-01")


def test_history_is_the_days_within_the_lookback(config: Config) -> None:
    from warmup_lib.airflow.days import history

    assert history(config, "2026-03-14") == ["2026-03-13", "2026-03-14"]
    assert history(config, "2026-03-13") == ["2026-03-13"]


def test_a_day_whose_logs_are_not_there_is_no_day_to_plan_from(config: Config) -> None:
    from warmup_lib.airflow.days import history

    with pytest.raises(
        InputDataError, match=r"no requests of 2026-03-15.*newest day is 2026-03-14"
    ):
        history(config, "2026-03-15")


def test_only_days_that_are_new_or_changed_are_distilled_again(config: Config) -> None:
    from warmup_lib.airflow.days import stale_days

    assert stale_days(config, "2026-03-14") == ["2026-03-14"]


def test_a_day_was_served_by_the_newest_plan_for_everything_of_an_earlier_day(
    lake: Lake, config: Config
) -> None:
    from warmup_lib.airflow.days import plan_for

    with pytest.raises(InputDataError, match="no plan was made from the days before 2026-03-14"):
        plan_for(config, "2026-03-14")
    add_plan(lake, "2026-03-11-nightly-aa")
    add_plan(lake, "2026-03-12-nightly-bb")
    add_plan(lake, "2026-03-13-prepeak-cc", layers=["prefixes"])
    add_plan(lake, "2026-03-13-launch-dd", scope={"tenants": ["a"], "models": None})
    add_plan(lake, "2026-03-14-nightly-ee")
    assert plan_for(config, "2026-03-14") == "2026-03-12-nightly-bb"
    assert plan_for(config, "2026-03-15") == "2026-03-14-nightly-ee"
