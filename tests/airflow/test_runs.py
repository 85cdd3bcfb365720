"""Each DAG, run in order by `airflow dags test` on the embedded stack; no text stays behind."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from samples.generate import generate
from samples.parameters import FIRST_DAY, MODEL
from samples.shipped import Shipped
from warmup_lib.lake import Lake
from warmup_lib.stack import StackState

pytestmark = [pytest.mark.airflow, pytest.mark.host]

ROOT = Path(__file__).parents[2]
DAYS = [(FIRST_DAY + timedelta(days=number)).isoformat() for number in range(5)]
HISTORY, PLANNED, LATER = DAYS[:-1], DAYS[-2], DAYS[-1]
SECRET = "5f" * 32

SETTINGS: dict[str, Any] = {
    "layers": {
        "embeddings": {"items": 60},
        "responses": {"items": 60, "generate": 0},
        "prefixes": {"items": 3},
    },
    "plan": {"drift_threshold": 0.99},
    "verify": {"host_sample": 4, "cold_sample": 2},
    "gates": {"cache_hit_ratio": 0.01},
    "targets": [
        {"kind": "redis", "name": "cache", "connection": "warmup_cache"},
        {"kind": "host", "name": "host", "connection": "warmup_host", "cache_salt": "derived"},
    ],
}


@dataclass(frozen=True)
class Site:
    """A lake, an inbox and an Airflow of one test run."""

    folder: Path
    home: Path
    stack: StackState
    output: list[str]

    @property
    def lake(self) -> Lake:
        return Lake(f"file://{self.folder}/lake")

    def configure(self, **changed: Any) -> None:
        settings = {
            "lake": f"file://{self.folder}/lake",
            "schedule": {"inbox": f"{self.folder}/inbox"},
            **SETTINGS,
            **changed,
        }
        (self.folder / "warmup.yaml").write_text(yaml.safe_dump(settings))

    def deliver(self, day: str) -> None:
        name = f"requests-{day}.jsonl.gz"
        (self.folder / "log" / name).rename(self.folder / "inbox" / name)

    def run(self, dag: str, **form: Any) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "dags", "test", dag, "--conf", json.dumps(form)],
            env={
                **os.environ,
                "WARMUP_CONFIG": str(self.folder / "warmup.yaml"),
                "AIRFLOW_CONN_WARMUP_CACHE": self.stack.services["redis"].url,
                "AIRFLOW_CONN_WARMUP_HOST": self.stack.hosts[0].url,
                "AIRFLOW_CONN_WARMUP_SECRET": f"generic://:{SECRET}@",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        self.output.append(done.stdout + done.stderr)
        return done

    def states(self, dag: str) -> dict[str, str]:
        """Return the states of the tasks of the DAG's last run."""
        with sqlite3.connect(self.home / "airflow.db") as connection:
            rows = connection.execute(
                "SELECT task_id, state FROM task_instance WHERE run_id = (SELECT run_id FROM "
                "dag_run WHERE dag_id = ? ORDER BY id DESC LIMIT 1) AND dag_id = ?",
                (dag, dag),
            ).fetchall()
        return dict(rows)

    def xcom(self, dag: str, task: str) -> dict[str, Any]:
        """Return what a task of the DAG's last run told."""
        with sqlite3.connect(self.home / "airflow.db") as connection:
            (value,) = connection.execute(
                "SELECT value FROM xcom WHERE dag_id = ? AND task_id = ? AND key = 'return_value' "
                "ORDER BY timestamp DESC LIMIT 1",
                (dag, task),
            ).fetchone()
        told: dict[str, Any] = json.loads(value)
        return told

    def events(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return name, partition key and extra of all asset events."""
        with sqlite3.connect(self.home / "airflow.db") as connection:
            rows = connection.execute(
                "SELECT asset.name, partition_key, asset_event.extra FROM asset_event "
                "JOIN asset ON asset.id = asset_id ORDER BY asset_event.id"
            ).fetchall()
        return [(name, key, json.loads(extra)) for name, key, extra in rows]

    def prompts(self, count: int) -> list[str]:
        """Return prompts of the log that can't be found by chance, evenly drawn."""
        rows = self.lake.read("prompts", {"day": PLANNED}, ["text"])["text"].to_pylist()
        texts = sorted({text for text in rows if len(text) > 20 or not text.isascii()})
        return texts[:: len(texts) // count][:count]

    def logs(self) -> list[str]:
        """Return all files below Airflow's home but the database."""
        files = [f for f in self.home.rglob("*") if f.is_file() and "airflow.db" not in f.name]
        return [f.read_text(encoding="utf-8", errors="replace") for f in files]

    def tables(self) -> list[str]:
        """Return every row of every table of Airflow's database as text, XCom among them."""
        with sqlite3.connect(self.home / "airflow.db") as connection:
            names = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type='table'"
                )
            ]
            assert "xcom" in names
            return [
                " ".join(str(value) for value in row)
                for name in names
                for row in connection.execute(f'SELECT * FROM "{name}"')
            ]


@pytest.fixture(scope="module")
def site(
    airflow_db: Path, stack_host: StackState, tmp_path_factory: pytest.TempPathFactory
) -> Site:
    folder = tmp_path_factory.mktemp("site")
    generate(folder / "log", Shipped(), days=len(DAYS), scale=0.02)
    (folder / "inbox").mkdir()
    made = Site(folder, airflow_db, stack_host, [])
    made.configure()
    for day in HISTORY:
        made.deliver(day)
    return made


def succeeded(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stdout + done.stderr


def test_a_nightly_run_goes_from_logs_to_proven_warmth(site: Site) -> None:
    succeeded(site.run("warmup_nightly", day=PLANNED))
    assert set(site.states("warmup_nightly").values()) == {"success"}
    plan = site.xcom("warmup_nightly", "plan")
    assert plan["decision"] == "planned"
    assert plan["plan_id"].startswith(f"{PLANNED}-nightly-")
    assert site.xcom("warmup_nightly", "distil")["days"] == HISTORY
    verified = site.xcom("warmup_nightly", "verify")
    assert verified["plan_id"] == plan["plan_id"]
    assert verified["gates"]["warmup_completion"]["passed"] is True


def test_a_nightly_run_whose_plan_still_serves_waits_and_renews_what_is_warm(site: Site) -> None:
    before = site.xcom("warmup_nightly", "plan")["plan_id"]
    site.deliver(LATER)
    succeeded(site.run("warmup_nightly", day=LATER))
    plan = site.xcom("warmup_nightly", "plan")
    assert (plan["decision"], plan["plan_id"]) == ("wait", before)
    assert site.xcom("warmup_nightly", "distil")["days"] == [LATER]
    assert site.xcom("warmup_nightly", "embed")["days"] == DAYS
    applied = site.xcom("warmup_nightly", "apply")
    assert (applied["warmed"] > 0, applied["kept"]) == (True, 0)


def test_the_events_carry_the_log_day_and_counts(site: Site) -> None:
    events = site.events()
    assert [(name, key) for name, key, _ in events] == [
        ("warmup_plan", PLANNED),
        ("warmup_warmth", PLANNED),
        ("warmup_plan", LATER),
        ("warmup_warmth", LATER),
    ]
    assert len({extra["plan_id"] for _, _, extra in events}) == 1


def test_a_launch_with_plan_only_warms_nothing(site: Site) -> None:
    succeeded(site.run("warmup_launch", day=PLANNED, tenants=["acme-bank"], dry_run=True))
    assert site.states("warmup_launch") == {
        "plan": "success",
        "apply": "skipped",
        "verify": "skipped",
    }


def test_a_launch_warms_what_its_form_selects(site: Site) -> None:
    form = {"model": MODEL, "tenants": ["acme-bank"], "layers": ["responses"]}
    form |= {"targets": ["cache"]}
    succeeded(site.run("warmup_launch", day=PLANNED, **form))
    assert set(site.states("warmup_launch").values()) == {"success"}
    plan_id = site.xcom("warmup_launch", "plan")["plan_id"]
    items = site.lake.read("plan", {"plan_id": plan_id}, ["tenant", "layer", "model"])
    assert items.num_rows > 0
    assert set(map(tuple, map(dict.values, items.to_pylist()))) == {
        ("acme-bank", "responses", MODEL)
    }


def test_a_prepeak_run_warms_heads_alone_from_the_newest_log(site: Site) -> None:
    succeeded(site.run("warmup_prepeak"))
    assert set(site.states("warmup_prepeak").values()) == {"success"}
    plan = site.xcom("warmup_prepeak", "plan")
    assert plan["plan_id"].startswith(f"{LATER}-prepeak-")
    items = site.lake.read("plan", {"plan_id": plan["plan_id"]}, ["layer"])
    assert set(items["layer"].to_pylist()) == {"prefixes"}


def test_a_validation_measures_the_nightly_plan_on_the_day_it_was_made_for(site: Site) -> None:
    nightly = site.xcom("warmup_nightly", "plan")["plan_id"]
    succeeded(site.run("warmup_validate", day=LATER))
    told = site.xcom("warmup_validate", "validate")
    assert (told["plan_id"], told["window"], told["in_sample"]) == (nightly, LATER, False)
    assert told["gates"]["cache_hit_ratio"]["value"] > 0.01
    assert told["hit_ratio"]["responses"]["overall"] > 0.01
    assert sum(told["causes"].values()) == told["misses"] > 0
    assert told["unknown_share"] <= 0.02


def test_a_gate_that_fails_fails_the_validation_at_once(site: Site) -> None:
    site.configure(gates={"cache_hit_ratio": 1.0})
    begun = time.monotonic()
    done = site.run("warmup_validate", day=LATER)
    assert done.returncode != 0
    assert site.states("warmup_validate") == {"ingest": "success", "validate": "failed"}
    assert "cache_hit_ratio is " in done.stdout
    assert time.monotonic() - begun < 60
    site.configure()


def test_nothing_that_airflow_keeps_or_prints_holds_a_prompt_or_the_secret(site: Site) -> None:
    prompts = site.prompts(20)
    assert len(prompts) == 20
    kept = [*site.output, *site.logs(), *site.tables()]
    assert any(site.xcom("warmup_nightly", "plan")["plan_id"] in text for text in site.tables())
    assert any("prove responses on cache" in text for text in site.output)
    for prompt in prompts:
        for form in (prompt, json.dumps(prompt)[1:-1]):
            assert not any(form in text for text in kept), "a prompt was found"
    assert not any(SECRET in text for text in kept), "the key secret was found"
