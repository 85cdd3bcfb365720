from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytestmark = [pytest.mark.airflow, pytest.mark.host, pytest.mark.usefixtures("stack_host")]

DAGS = ["warmup_launch", "warmup_nightly", "warmup_prepeak", "warmup_validate"]


@dataclass
class Ui:
    """A running `make ui`: its process, what it has printed, and a client that is logged in."""

    process: subprocess.Popen[str]
    printed: str
    client: httpx.Client
    home: Path


def started(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if "Ctrl-C" in line:
            break
    return printed


@pytest.fixture(scope="module")
def ui(stack_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    folder = tmp_path_factory.mktemp("ui")
    config = folder / "warmup.yaml"
    config.write_text(f"lake: file://{folder}/lake\n")
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "warmup_lib.airflow.local"],
        env={
            **os.environ,
            "AIRFLOW_HOME": str(folder / "home"),
            "WARMUP_CONFIG": str(config),
            "WARMUP_HOME": str(stack_home),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        printed = started(process)
        found = re.search(r"Airflow +(http://127\.0\.0\.1:\d+) +login: admin / (\S+)", printed)
        assert found, printed
        token = httpx.post(
            f"{found[1]}/auth/token", json={"username": "admin", "password": found[2]}
        ).json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"{found[1]}/api/v2", headers=headers, timeout=30) as client:
            yield Ui(process, printed, client, folder / "home")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def poll(ask: Any, seconds: float) -> Any:
    """Return the first answer of `ask` that is true."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.5)
    return answer


def test_it_shows_the_dags_paused_and_without_import_errors(ui: Ui) -> None:
    def listed() -> Any:
        found = ui.client.get("/dags").json()
        return found["dags"] if found["total_entries"] == len(DAGS) else None

    dags = poll(listed, 60)
    assert [d["dag_id"] for d in dags] == DAGS
    assert all(d["is_paused"] for d in dags)
    assert ui.client.get("/importErrors").json()["total_entries"] == 0


def test_the_pool_of_the_gpu_tasks_has_one_slot(ui: Ui) -> None:
    assert ui.client.get("/pools/warmup_gpu").json()["slots"] == 1


def test_a_run_that_is_triggered_runs_and_says_what_is_missing(ui: Ui) -> None:
    """The lake is empty: the task must fail at once, with the library's sentence, and not retry."""
    ui.client.patch("/dags/warmup_nightly", json={"is_paused": False}).raise_for_status()
    asked = {"logical_date": None, "conf": {"day": "2026-03-05"}}
    run = ui.client.post("/dags/warmup_nightly/dagRuns", json=asked).raise_for_status().json()
    place = f"/dags/warmup_nightly/dagRuns/{run['dag_run_id']}"

    def ended() -> Any:
        state = ui.client.get(place).json()["state"]
        return state if state in ("success", "failed") else None

    assert poll(ended, 120) == "failed"
    distil = ui.client.get(f"{place}/taskInstances/distil").json()
    assert (distil["state"], distil["try_number"]) == ("failed", 1)
    assert ui.client.get(f"{place}/taskInstances/ingest").json()["state"] == "success"
    # Unpaused after the hour of its schedule, the DAG runs on its own too: only our run counts.
    logs = (ui.home / "logs").glob("dag_id=warmup_nightly/**/task_id=distil/attempt=1.log")
    (log,) = (path for path in logs if f"run_id={run['dag_run_id']}" in path.parts)
    assert "the lake has no requests of 2026-03-05" in log.read_text(encoding="utf-8")


def test_nothing_was_printed_but_what_helps_and_nothing_warned(ui: Ui) -> None:
    assert "Lake" in ui.printed
    assert "it has no logs yet" in ui.printed
    assert not re.search(r"Traceback|[Ww]arning", ui.printed)
    for log in (ui.home / "ui").glob("*.log"):
        noise = re.findall(r".*(?:Warning|Traceback).*\n?.*", log.read_text(encoding="utf-8"))
        assert noise == [], log.name


def test_ctrl_c_stops_all_of_it(ui: Ui) -> None:
    family = psutil.Process(ui.process.pid).children(recursive=True)
    assert len(family) >= 4
    ui.process.send_signal(signal.SIGINT)
    assert ui.process.wait(90) == 0
    assert ui.process.stdout is not None
    assert ui.process.stdout.read().strip().endswith("stopped")
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []
