"""On a real Redis: killed, stopped and resumed applies end with everything warm, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apply.handmade import SECRET, fill, items
from tests.apply.server import Server
from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.stage import StageReport

pytestmark = pytest.mark.stack

DIMENSION = 64
EACH = 1000
ITEMS = 2 * EACH
IN_FLIGHT = 4 * 25


@pytest.fixture
def server(stack_artifacts: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "redis", stack_artifacts)
    yield server
    server.stop()


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)
    lake = Lake(f"file://{tmp_path}/lake")
    numbers = range(EACH)
    plan = items("embeddings", numbers, DIMENSION) + items("responses", numbers, DIMENSION)
    fill(lake, plan, numbers, DIMENSION)
    return lake


def settings(lake: Lake, server: Server) -> dict[str, Any]:
    return {
        "lake": lake.uri,
        "apply": {"batch": 25, "concurrency": 4, "attempts": 2},
        "targets": [{"kind": "redis", "name": "cache", "url": server.url}],
    }


def apply(lake: Lake, server: Server, **options: Any) -> StageReport:
    config = Config.model_validate(settings(lake, server))
    return pipeline.apply(config, "p1", **options)


def receipts(lake: Lake) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.read("receipts", {"plan_id": "p1"}).to_pylist()
    return rows


def check_complete(lake: Lake, server: Server, report: StageReport) -> None:
    counts = report.facts["completion"]
    assert [counts[layer]["cache"]["completion"] for layer in counts] == [1.0, 1.0]
    rows = receipts(lake)
    assert len(rows) == len({row["item_id"] for row in rows}) == ITEMS
    assert {row["status"] for row in rows} == {"warmed"}
    assert {row["ttl_s"] for row in rows} == {172_800}
    assert len(server.expiries()) == ITEMS
    verified = pipeline.verify(Config.model_validate(settings(lake, server)), "p1").facts
    assert verified["gates"]["warmup_completion"]["value"] == 1.0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_after_kill_9_resume_warms_only_what_was_in_flight_or_left(
    lake: Lake, server: Server, share: float
) -> None:
    arguments = [json.dumps(settings(lake, server)), "p1", str(int(ITEMS * share))]
    script = Path(__file__).with_name("killed.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, str(script), *arguments], env=environment, check=False)
    assert ended.returncode == -9
    done = {row["item_id"]: row["at"] for row in receipts(lake)}
    assert ITEMS * share <= len(done) <= ITEMS * share + IN_FLIGHT
    before = server.expiries()
    assert len(done) <= len(before) <= len(done) + IN_FLIGHT

    report = apply(lake, server, resume=True)
    check_complete(lake, server, report)
    assert report.facts["kept"] == len(done)
    assert report.facts["warmed"] == ITEMS - len(done)
    after = server.expiries()
    again = sum(after[key] != expiry for key, expiry in before.items())
    assert again == len(before) - len(done) <= IN_FLIGHT
    kept = {row["item_id"]: row["at"] for row in receipts(lake) if row["item_id"] in done}
    assert kept == done


def test_a_redis_that_stops_is_named_and_resume_completes_after_its_return(
    lake: Lake, server: Server
) -> None:
    def stop(_: str, done: int, __: int | None) -> None:
        if done >= ITEMS // 4 and server.url:
            server.stop()
            server.url = ""

    url = server.url
    report = apply(lake, server, progress=stop)
    [down] = report.facts["unavailable"]
    assert down == {"target": "cache", "reason": "no connection"}
    assert any("'cache' was given up: no connection" in note for note in report.notes)
    kept = receipts(lake)
    done = sum(row["status"] == "warmed" for row in kept)
    assert ITEMS // 4 <= done <= ITEMS // 4 + IN_FLIGHT
    assert len(kept) == ITEMS
    assert {row["error"] for row in kept if row["status"] == "failed"} == {"no connection"}

    server.start()
    assert server.url != url
    # The new process has nothing of what the old one held: all of it is warmed again.
    report = apply(lake, server, resume=True)
    assert report.facts["warmed"] == ITEMS
    check_complete(lake, server, report)


def test_a_second_apply_refreshes_every_lifetime(lake: Lake, server: Server) -> None:
    apply(lake, server)
    before = server.expiries()
    report = apply(lake, server)
    after = server.expiries()
    assert after.keys() == before.keys()
    assert all(after[key] > before[key] for key in before)
    check_complete(lake, server, report)
