from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.errors import GateFailed, TargetUnavailable
from warmup_lib.stage import StageReport

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_home", "context", "library")]

PLAN_ID = "2026-03-14-nightly-5f6a7b8c9d"
GOOD = {"warmup_completion": {"passed": True}}


class Event:
    def __init__(self) -> None:
        self.extra: dict[str, Any] = {}
        self.partitions: list[str] = []

    def add_partitions(self, keys: str) -> None:
        self.partitions.append(keys)


class Library:
    """Stands for the pipeline: notes each call and answers with the facts it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.chosen: Any = None
        self.facts: dict[str, dict[str, Any]] = {
            "plan": {"plan_id": PLAN_ID, "decision": "planned"},
            "apply": {"plan_id": PLAN_ID, "unavailable": []},
            "verify": {"plan_id": PLAN_ID, "gates": GOOD},
            "explain": {"misses": 3, "causes": {"unseen": 3}, "unknown_share": 0.0},
        }

    def config(self, targets: Any = None) -> Config:
        self.chosen = targets
        return Config()

    def stage(self, name: str) -> Any:
        def call(config: Config, *args: Any, progress: Any, **options: Any) -> StageReport:
            assert isinstance(config, Config)
            assert callable(progress)
            self.calls.append((name, args, options))
            return StageReport(name, 2, 1, 0.5, facts=self.facts.get(name, {}))

        return call


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    from warmup_lib.airflow import report, stages

    run = SimpleNamespace(
        run_type="manual", partition_key=None, run_after=datetime(2026, 3, 15, 2, tzinfo=UTC)
    )
    made = {
        "dag_run": run,
        "params": {},
        "ti": SimpleNamespace(try_number=1),
        "outlet_events": defaultdict(Event),
    }
    for module in (report, stages):
        monkeypatch.setattr(module, "get_current_context", lambda: made)
    return made


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    from warmup_lib.airflow import stages

    fake = Library()
    monkeypatch.setattr(stages, "task_config", fake.config)
    for name in ("plan", "apply", "verify", "explain"):
        monkeypatch.setattr(pipeline, name, fake.stage(name))
    return fake


def planned(decision: str = "planned") -> Any:
    from warmup_lib.airflow.report import Facts

    return Facts({"plan_id": PLAN_ID, "decision": decision})


def test_the_run_knows_its_day(context: dict[str, Any]) -> None:
    from warmup_lib.airflow import stages

    assert (stages.run_day(), stages.run_day(back=0)) == ("2026-03-14", "2026-03-15")
    context["params"] = {"day": "2026-01-01"}
    assert stages.run_day() == "2026-01-01"


def test_a_plan_is_announced_under_its_day(library: Library, context: dict[str, Any]) -> None:
    from warmup_lib.airflow import stages
    from warmup_lib.airflow.assets import PLAN

    facts = stages.plan("2026-03-14", "nightly")
    assert library.calls[0][1] == ("2026-03-14",)
    assert library.calls[0][2]["force"] is False
    event = context["outlet_events"][PLAN]
    assert (event.extra, event.partitions) == (facts, ["2026-03-14"])


@pytest.mark.parametrize(
    ("form", "asked"),
    [
        (
            {"model": None, "tenants": [], "layers": None},
            {"models": None, "tenants": None, "layers": None},
        ),
        (
            {"model": "m", "tenants": ["a", "b"], "layers": ["responses"]},
            {"models": ["m"], "tenants": ["a", "b"], "layers": ["responses"]},
        ),
    ],
)
def test_a_launch_plans_for_what_its_form_selects(
    library: Library, form: dict[str, Any], asked: dict[str, Any]
) -> None:
    from warmup_lib.airflow import stages

    stages.launch_plan("2026-03-14", form)
    assert library.calls == [("plan", ("2026-03-14",), {"kind": "launch", "force": True, **asked})]


@pytest.mark.parametrize(("tries", "resume"), [(1, False), (2, True)])
def test_a_retry_resumes(
    library: Library, context: dict[str, Any], tries: int, resume: bool
) -> None:
    from warmup_lib.airflow import stages

    context["ti"].try_number = tries
    stages.apply(planned(), targets=["cache"])
    assert library.calls == [("apply", (PLAN_ID,), {"resume": resume})]
    assert library.chosen == ["cache"]


def test_a_plan_that_still_serves_is_warmed_again_and_that_is_said(
    library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    from warmup_lib.airflow import stages

    with caplog.at_level("INFO"):
        stages.apply(planned("wait"))
    assert library.calls == [("apply", (PLAN_ID,), {"resume": False})]
    assert (
        "the current plan still serves: it is warmed again to renew its lifetimes"
        in caplog.messages
    )


def test_a_target_that_was_down_fails_the_task(library: Library) -> None:
    from warmup_lib.airflow import stages

    library.facts["apply"]["unavailable"] = [{"target": "cache", "reason": "connection refused"}]
    with pytest.raises(TargetUnavailable, match="target 'cache' is not available"):
        stages.apply(planned())


def test_warmth_is_announced_only_where_the_gates_hold(
    library: Library, context: dict[str, Any]
) -> None:
    from warmup_lib.airflow import stages
    from warmup_lib.airflow.assets import WARMTH

    library.facts["verify"]["gates"] = {
        "cache_hit_ratio": {"passed": False, "value": 0.1, "threshold": 0.3}
    }
    with pytest.raises(GateFailed, match="cache_hit_ratio"):
        stages.verify("2026-03-14", PLAN_ID)
    assert not context["outlet_events"]
    library.facts["verify"]["gates"] = GOOD
    stages.verify("2026-03-14", PLAN_ID)
    assert context["outlet_events"][WARMTH].partitions == ["2026-03-14"]


def test_misses_are_explained_where_there_is_traffic_also_below_a_gate(
    library: Library, context: dict[str, Any]
) -> None:
    from warmup_lib.airflow import stages

    assert context
    facts = stages.verify("2026-03-14", PLAN_ID, later="2026-03-15")
    assert facts["causes"] == {"unseen": 3}
    assert library.calls[-1] == ("explain", (PLAN_ID,), {"day": "2026-03-15"})
    assert "causes" not in stages.verify("2026-03-14", PLAN_ID)
    library.facts["verify"]["gates"] = {
        "cache_hit_ratio": {"passed": False, "value": 0.1, "threshold": 0.3}
    }
    with pytest.raises(GateFailed):
        stages.verify("2026-03-14", PLAN_ID, later="2026-03-16")
    assert library.calls[-1] == ("explain", (PLAN_ID,), {"day": "2026-03-16"})


def test_an_empty_inbox_leaves_the_lake_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    from warmup_lib.airflow import stages

    with caplog.at_level("INFO"):
        assert stages.ingest() == {"stage": "ingest", "files": 0, "rows_in": 0, "rows_out": 0}
    assert "no files in the inbox (None): the lake stays as it is" in caplog.messages
