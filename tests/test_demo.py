"""The demo, on a small log and the real stack: what it prints, and that it can run twice."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.explain.second import Second, client
from warmup_lib import pipeline, stack
from warmup_lib.config import Config
from warmup_lib.lake import Lake


def demo(folder: Path, home: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "warmup_lib.cli", "demo", "--folder", str(folder), *arguments],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"WARMUP_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    if "--json" not in arguments:
        return {"stdout": done.stdout, "stderr": done.stderr}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def first(folder: Path, stack_host: object, stack_home: Path) -> dict[str, Any]:
    """What the first run told; its lake is there for all tests."""
    assert stack_host
    return demo(folder, stack_home, "--scale", "0.1", "--json")


@pytest.mark.host
def test_every_miss_has_a_cause_and_a_second_way_finds_the_same(
    first: dict[str, Any], stack_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, plan_id = first["explain"], first["plan_id"]
    lake, window = Lake(first["lake"]), told["window"]
    assert told["unknown_share"] <= 0.02
    assert sum(told["causes"].values()) == told["misses"] > 300
    partition = {"plan_id": plan_id, "window": window}
    rows = lake.read("causes", partition).to_pylist()
    assert all(row["cause"] and row["evidence"] for row in rows)
    places = ("request_id", "layer", "tier", "target")
    missed = {
        tuple(r[p] for p in places)
        for r in lake.read("hits", partition).to_pylist()
        if not r["hit"]
    }
    seen = {tuple(r[p] for p in places) for r in rows if not r["cause"].startswith("bypass")}
    assert seen == missed

    monkeypatch.setenv("WARMUP_HOME", str(stack_home))
    config, running = Config(lake=first["lake"]), stack.status(stack_home).redis
    assert running is not None
    keys = pipeline.open_keys(config)
    second = Second(lake, plan_id, window, keys, client(running.url), config)
    drawn = random.Random(50).sample(rows, 50)
    wrong = [
        (r["layer"], r["cause"], c) for r in drawn if r["cause"] not in (c := second.causes(r))
    ]
    assert not wrong


@pytest.mark.host
def test_the_demo_warms_proves_and_measures_and_runs_twice(
    first: dict[str, Any], folder: Path, stack_home: Path
) -> None:
    assert first["composed"] is True
    assert first["skipped"] == []
    verified = first["verify"]
    assert set(verified["completion"]) >= {"embeddings", "responses", "retrieval", "prefixes"}
    assert set(verified["tiers"]) == {"L1", "L2", "L3"}
    assert verified["tiers"]["L1"]["hit_ratio"] > 0.8
    for audit in verified["audit"]["retrieval"].values():
        assert audit["lists_equal"] == audit["lists_checked"] > 20
    assert verified["gates"]["warmup_completion"]["value"] >= 0.995
    assert verified["control_hits"] == 0
    for layer, beside in verified["baselines"].items():
        ours = verified["hit_ratio"][layer]["overall"]
        assert 0.0 == beside["cold"] < ours <= 1.0
        assert beside["top_k"] <= beside["hindsight"]
    for layer in ("embeddings", "responses"):  # what is found live is what was covered offline
        offline = verified["baselines"][layer]["plan"]
        assert verified["hit_ratio"][layer]["overall"] == pytest.approx(offline, abs=0.005)
    token = verified["first_token"]
    assert token["warm"]["p50"] < token["cold"]["p50"]
    assert Path(first["picture"]).read_bytes().startswith(b"\x89PNG")

    again = demo(folder, stack_home, "--scale", "0.1")
    assert first["plan_id"] in again["stdout"]
    assert "composed" in again["stdout"]
    assert "docs/causes.md#unseen" in again["stdout"]
    for word in ("plain Top-K", "hindsight", "P99", "completion", "cold (fresh salt)"):
        assert word in again["stdout"]
