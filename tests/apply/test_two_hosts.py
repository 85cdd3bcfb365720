"""One Redis and two real model hosts: the order on each, one killed in the middle, and verify."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from samples.generate import generate
from samples.shipped import Shipped
from warmup_lib import pipeline, stack
from warmup_lib.cli import main
from warmup_lib.config import Config, load_config
from warmup_lib.errors import TargetUnavailable
from warmup_lib.lake import Lake
from warmup_lib.stack.state import Service

pytestmark = [pytest.mark.slow, pytest.mark.host]

HEADS = 10
LATER = "2026-03-09"
ON_HOSTS = ["weights", "adapters", "prefixes"]


class Pair:
    """Two hosts and a Redis of these tests' own, for one of the hosts is killed."""

    def __init__(self, home: Path, artifacts: Path, log: Path) -> None:
        self.home = home
        self._artifacts = artifacts
        self.settings = home / "warmup.yaml"
        self.start()
        settings = {
            "lake": f"file://{home}/lake",
            "layers": {
                "prefixes": {"items": HEADS},
                "responses": {"items": 60, "generate": 2, "max_tokens": 24},
                "embeddings": {"items": 60},
                "retrieval": {"enabled": False},
            },
            "apply": {"ready_timeout": "20s", "attempts": 2},
            "verify": {"host_sample": 24, "cold_sample": 12},
            "gates": {"cache_hit_ratio": 0.0},
        }
        self.settings.write_text(yaml.safe_dump(settings))
        days = sorted(log.glob("requests-*.jsonl.gz"))
        pipeline.ingest(self.config, days[:-1], "jsonl")
        self.day = days[-2].name.removeprefix("requests-")[:10]
        pipeline.build_day(self.config, self.day)
        self.plan_id: str = pipeline.plan(self.config, self.day).facts["plan_id"]
        pipeline.ingest(self.config, days[-1:], "jsonl")

    @property
    def config(self) -> Config:
        return load_config(self.settings)

    def start(self) -> None:
        told: list[str] = []  # printed, it could get into the output of a command that runs beside
        state = stack.up(self.home, hosts=2, progress=told.append, artifacts=self._artifacts)
        assert len(state.hosts) == 2, (state.skipped, told)

    def host(self, name: str) -> Service:
        return next(host for host in stack.status(self.home).hosts if host.name == name)

    def kill(self, name: str) -> None:
        os.killpg(self.host(name).pid, signal.SIGKILL)

    def receipts(self) -> list[dict[str, Any]]:
        lake = Lake(self.config.lake)
        rows: list[dict[str, Any]] = lake.read("receipts", {"plan_id": self.plan_id}).to_pylist()
        return rows

    def run(self, *arguments: str) -> Result:
        fixed = ["--plan", self.plan_id, "--config", str(self.settings)]
        return CliRunner().invoke(main, [arguments[0], *fixed, *arguments[1:]])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, stack_artifacts: Path) -> Iterator[Pair]:
    home = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARMUP_HOME", str(home))
        patch.setenv("WARMUP_SECRET", "s" * 32)
        generate(home / "log", Shipped(), scale=0.05, days=6)
        try:
            yield Pair(home, stack_artifacts, home / "log")
        finally:
            stack.down(home)


def told(result: Result) -> dict[str, Any]:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def test_each_host_gets_its_layers_in_order_and_verify_looks_at_both(pair: Pair) -> None:
    result = pair.run("apply", "--json")
    facts = told(result)
    assert (result.exit_code, facts["unavailable"], facts["not_ready"]) == (0, [], [])
    assert list(facts["layers"]) == [
        "weights", "adapters", "embeddings", "responses", "prefixes",
    ]  # fmt: skip
    rows = pair.receipts()
    for host in ("vllm-1", "vllm-2"):
        at = {
            layer: [r["at"] for r in rows if r["target"] == host and r["layer"] == layer]
            for layer in ON_HOSTS
        }
        assert all(at.values())
        for before, after in (("weights", "adapters"), ("adapters", "prefixes")):
            assert max(at[before]) < min(at[after])
        for layer in ON_HOSTS:
            took = facts["layers"][layer][host]
            counts = facts["completion"][layer][host]
            assert took["items"] == counts["done"] > 0
            assert took["seconds"] > 0
            assert took["bytes"] > 0
            assert counts["failed"] + counts["missing"] == 0
        weights = facts["layers"]["weights"][host]
        assert weights["issued"] == weights["effective"] > 0
        assert weights["bytes"] > 200e6  # SmolLM2-135M in bfloat16
        assert facts["interference"][host]["sees_load"]
    for layer in ("embeddings", "responses"):
        assert facts["layers"][layer]["redis"]["bytes"] > 10_000
    assert set(facts["readiness"]) == {"redis", "vllm-1", "vllm-2"}

    verified = told(pair.run("verify", "--day", LATER, "--json"))
    for layer in ON_HOSTS:
        for host in ("vllm-1", "vllm-2"):
            assert verified["completion"][layer][host]["completion"] == 1.0
    control = verified["control"]["prefixes"]
    assert {host: one["hits"] for host, one in control.items()} == {"vllm-1": 0, "vllm-2": 0}
    assert min(one["asked"] for one in control.values()) >= 4
    assert verified["control_hits"] == 0
    assert verified["first_token"]["warm"]["p50"] < verified["first_token"]["cold"]["p50"]


def test_a_host_killed_in_the_middle_is_told_and_resume_completes(pair: Pair) -> None:
    before = len(pair.receipts())
    assert before

    def warmed_heads() -> int:
        return sum(
            (r["target"], r["layer"], r["status"]) == ("vllm-2", "prefixes", "warmed")
            and r["at"] > began
            for r in pair.receipts()
        )

    def watch() -> None:
        while warmed_heads() < HEADS // 3:
            time.sleep(0.1)
        pair.kill("vllm-2")

    began = max(row["at"] for row in pair.receipts())
    pair.kill("vllm-2")  # a restart empties the caches, so that there is work
    pair.kill("vllm-1")
    pair.start()
    killer = threading.Thread(target=watch)
    killer.start()
    result = pair.run("apply", "--json")
    killer.join(60)
    facts = told(result)
    assert result.exit_code == 1
    assert [one["target"] for one in facts["unavailable"]] == ["vllm-2"]
    [reason] = {one["reason"] for one in facts["unavailable"]}
    for layer, targets in facts["completion"].items():
        for target, counts in targets.items():
            if target != "vllm-2":
                assert counts["done"] + counts["already"] == counts["planned"], (layer, target)
    lost = facts["completion"]["prefixes"]["vllm-2"]
    assert HEADS // 3 <= lost["done"] < HEADS
    assert lost["done"] + lost["already"] + lost["failed"] == lost["planned"]
    failed = [r for r in pair.receipts() if r["target"] == "vllm-2" and r["status"] == "failed"]
    assert len(failed) == lost["failed"]
    assert {r["error"] for r in failed} == {reason}
    assert any("'vllm-2' was given up" in note for note in facts["notes"])

    pair.start()
    again = pair.run("apply", "--resume", "--json")
    facts = told(again)
    assert again.exit_code == 0
    for targets in facts["completion"].values():
        assert min(counts["completion"] for counts in targets.values()) >= 0.995
    # What vllm-1 and the Redis held was left alone; vllm-2 had lost everything with its process.
    for layer in ON_HOSTS:
        assert facts["layers"][layer]["vllm-1"]["items"] == 0
        assert facts["layers"][layer]["vllm-2"]["items"] > 0
    epochs = {r["target_epoch"] for r in pair.receipts() if r["target"] == "vllm-2"}
    assert len(epochs) == 1
    assert told(pair.run("verify", "--json"))["gates"]["warmup_completion"]["value"] >= 0.995


def test_a_host_that_is_still_starting_is_waited_for(pair: Pair) -> None:
    pair.kill("vllm-2")
    starting = threading.Thread(target=pair.start)
    starting.start()
    # Its address is known once its process runs, long before it answers.
    while not _starting(pair):
        time.sleep(0.2)
    text = pair.settings.read_text().replace("ready_timeout: 20s", "ready_timeout: 5m")
    pair.settings.write_text(text)
    result = pair.run("apply", "--resume", "--json")
    starting.join()
    facts = told(result)
    assert result.exit_code == 0, (facts["notes"], facts["completion"])
    assert not facts["readiness"]["vllm-1"]["waited"]
    assert facts["readiness"]["vllm-2"]["waited"]
    assert facts["readiness"]["vllm-2"]["ready_after_ms"] > 3000
    assert facts["completion"]["prefixes"]["vllm-2"]["completion"] == 1.0
    assert any("'vllm-2' was not ready when warming was triggered" in n for n in facts["notes"])


def _starting(pair: Pair) -> bool:
    try:
        return not pair.host("vllm-2").version
    except (StopIteration, TargetUnavailable):
        return False
