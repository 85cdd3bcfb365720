"""The demo, on a small log and the real stack: what it prints, and that it can run twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


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


@pytest.mark.host
def test_the_demo_warms_proves_and_measures_and_runs_twice(
    tmp_path: Path, stack_host: object, stack_home: Path
) -> None:
    assert stack_host
    first = demo(tmp_path, stack_home, "--scale", "0.1", "--json")
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

    again = demo(tmp_path, stack_home, "--scale", "0.1")
    assert first["plan_id"] in again["stdout"]
    assert "composed" in again["stdout"]
    for word in ("plain Top-K", "hindsight", "P99", "completion", "cold (fresh salt)"):
        assert word in again["stdout"]
