from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_home")]

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "dags").glob("*.py"))
NAMES = ["warmup_launch", "warmup_nightly", "warmup_prepeak", "warmup_validate"]

PROBE = """
import sys
import airflow.sdk
import airflow.dag_processing.dagbag
import runpy, time
begun = time.perf_counter()
for file in sys.argv[1:]:
    runpy.run_path(file)
heavy = ("pyarrow", "duckdb", "numpy", "pandas", "redis", "torch", "faiss", "sklearn")
print([name for name in heavy if name in sys.modules], time.perf_counter() - begun)
"""


@pytest.fixture(scope="module")
def bag() -> Any:
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(ROOT / "dags"), collect_dags=True)


@pytest.fixture(scope="module")
def dags(bag: Any) -> dict[str, Any]:
    return dict(bag.dags)


def test_every_file_holds_the_dag_it_is_named_after(bag: Any) -> None:
    assert bag.import_errors == {}
    assert sorted(bag.dags) == [f.stem for f in FILES] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_dag_says_what_it_is_and_runs_once_at_a_time(dags: dict[str, Any], name: str) -> None:
    dag = dags[name]
    source = (ROOT / "dags" / f"{name}.py").read_text(encoding="utf-8")
    assert dag.doc_md.strip() == ast.get_docstring(ast.parse(source))
    assert "warmup" in dag.tags
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert len(source.splitlines()) < 150


@pytest.mark.parametrize("name", NAMES)
def test_a_task_is_a_docstring_and_one_call_into_the_library(
    dags: dict[str, Any], name: str
) -> None:
    for task in dags[name].tasks:
        body = ast.parse(inspect.cleandoc(inspect.getsource(task.python_callable))).body[0]
        assert isinstance(body, ast.FunctionDef)
        assert ast.get_docstring(body), task.task_id
        assert [type(s) for s in body.body[1:]] == [ast.Return], task.task_id


@pytest.mark.parametrize("name", NAMES)
def test_retries_follow_the_error_class(dags: dict[str, Any], name: str) -> None:
    from warmup_lib.airflow.retry import RETRIES, RETRY_POLICY

    for task in dags[name].tasks:
        assert (task.retries, task.retry_policy) == (RETRIES, RETRY_POLICY), task.task_id


def test_work_on_a_gpu_or_host_has_pool_queue_and_timeout(dags: dict[str, Any]) -> None:
    heavy = {
        (d.dag_id, t.task_id): (t.pool, t.queue, t.execution_timeout is not None)
        for d in dags.values()
        for t in d.tasks
        if t.pool != "default_pool" or t.queue != "default"
    }
    assert set(heavy) == {
        ("warmup_nightly", "embed"),
        ("warmup_nightly", "apply"),
        ("warmup_prepeak", "apply"),
        ("warmup_launch", "apply"),
    }
    assert set(heavy.values()) == {("warmup_gpu", "gpu", True)}


def test_the_flow_of_the_nightly_plan(dags: dict[str, Any]) -> None:
    downstream = {t.task_id: sorted(t.downstream_task_ids) for t in dags["warmup_nightly"].tasks}
    assert downstream == {
        "ingest": ["distil", "documents"],
        "distil": ["embed"],
        "documents": ["embed"],
        "embed": ["forecast"],
        "forecast": ["cluster"],
        "cluster": ["plan"],
        "plan": ["apply", "verify"],
        "apply": ["verify"],
        "verify": [],
    }


def test_the_prepeak_run_goes_first_and_ends_at_the_peak(dags: dict[str, Any]) -> None:
    prepeak, nightly = dags["warmup_prepeak"], dags["warmup_nightly"]
    assert prepeak.dagrun_timeout.total_seconds() == 30 * 60
    assert all(
        t.weight_rule.__class__.__name__ == "_AbsolutePriorityWeightStrategy"
        or str(t.weight_rule) == "absolute"
        for t in prepeak.tasks
    )
    # The nightly weights are sums over what follows: at most one a task.
    assert prepeak.get_task("ingest").priority_weight > len(nightly.tasks)


def test_plan_and_warmth_are_announced(dags: dict[str, Any]) -> None:
    outlets = {
        (d.dag_id, t.task_id): [a.name for a in t.outlets]
        for d in dags.values()
        for t in d.tasks
        if t.outlets
    }
    assert outlets == {
        ("warmup_nightly", "plan"): ["warmup_plan"],
        ("warmup_nightly", "verify"): ["warmup_warmth"],
        ("warmup_prepeak", "plan"): ["warmup_plan"],
        ("warmup_prepeak", "verify"): ["warmup_warmth"],
        ("warmup_launch", "plan"): ["warmup_plan"],
        ("warmup_launch", "verify"): ["warmup_warmth"],
        ("warmup_validate", "validate"): ["warmup_warmth"],
    }


def test_parsing_is_quick_and_leaves_heavy_packages_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE, *map(str, FILES)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    heavy, _, seconds = done.stdout.rpartition(" ")
    assert heavy == "[]"
    assert float(seconds) < 5


def test_the_launch_form_offers_what_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    config = tmp_path / "warmup.yaml"
    config.write_text(
        "targets:\n"
        "  - {kind: redis, name: cache, url: 'redis://127.0.0.1:1'}\n"
        "  - {kind: host, name: host-a, url: 'http://127.0.0.1:1'}\n"
        "layers: {prefixes: {enabled: false}}\n"
    )
    monkeypatch.setenv("WARMUP_CONFIG", str(config))
    bag = DagBag(dag_folder=str(ROOT / "dags" / "warmup_launch.py"))
    params = bag.dags["warmup_launch"].params
    assert params.get_param("targets").schema["examples"] == ["cache", "host-a"]
    on = ["weights", "adapters", "embeddings", "responses"]
    assert params.get_param("layers").schema["examples"] == on
    assert params.dump() == {
        "model": None,
        "targets": [],
        "tenants": [],
        "layers": [],
        "day": None,
        "dry_run": False,
    }
    with pytest.raises(Exception, match="'nowhere' is not one of"):
        params["targets"] = ["nowhere"]


def test_the_launch_form_has_no_choice_among_the_embedded_targets(dags: dict[str, Any]) -> None:
    assert "targets" not in dags["warmup_launch"].params


def test_a_bad_setting_is_an_import_error_that_says_what_to_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    config = tmp_path / "warmup.yaml"
    config.write_text("schedule: {nightly: '0 2 * * 1-5'}\n")
    monkeypatch.setenv("WARMUP_CONFIG", str(config))
    bag = DagBag(dag_folder=str(ROOT / "dags"))
    wrong = {Path(file).stem: text for file, text in bag.import_errors.items()}
    assert sorted(wrong) == ["warmup_nightly", "warmup_validate"]
    assert all("schedule.nightly is '0 2 * * 1-5'" in text for text in wrong.values())
