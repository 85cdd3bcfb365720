"""A host on which some warm-up generations fail is not ready, and says how many worked where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.apply.memory import plan_item, plan_table
from tests.preflight.building import healthy, write_tensors
from tests.targets.tiny_host import MODEL, TinyHost, serving
from warmup_lib.cli import main
from warmup_lib.lake import Lake
from warmup_lib.layers.base import SHARED

_BARE = {"model": MODEL, "encoder": None, "text_digest": None, "text": None, "response": None}
WEIGHTS = replace(
    plan_item("weights", 1, tenant=SHARED),
    **_BARE,
    params=json.dumps({"buckets": [{"tokens": 20, "steps": 60}, {"tokens": 60, "steps": 40}]}),
)
HEAD = replace(
    plan_item("prefixes", 2),
    **_BARE,
    system_prompt="you help with " + "many things and more of them " * 6,
)
PLAN = [WEIGHTS, HEAD]
SHORT = "98 of 100 warm-up generations worked on rank"


class Steady(TinyHost):
    """A host whose cache holds the head, with one engine or two."""

    def __init__(self, engines: int = 1) -> None:
        super().__init__()
        self.kv_blocks = 2000
        self.engines = engines


class Short(Steady):
    """A host that fails two warm-up generations on its last engine."""

    def __init__(self, engines: int = 1) -> None:
        super().__init__(engines)
        self.generated = 0
        self.fails = {17, 61}

    def chat_on(self, engine: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if engine == self.engines - 1 and body["max_tokens"] == 2:
            self.generated += 1
            if self.generated in self.fails:
                return 500, {"error": {"message": "out of memory", "code": 500}}
        return super().chat_on(engine, body)


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", "s" * 32)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake((tmp_path / "lake").as_uri())
    lake.replace("plan", {"plan_id": "p1"}, plan_table(PLAN), {"day": "2026-03-14"})
    return lake


@pytest.fixture
def start() -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda host: stack.enter_context(serving(host))


def run(lake: Lake, hosts: dict[str, TinyHost], *arguments: str) -> tuple[int, dict[str, Any]]:
    path = Path(lake.root).parent / "warmup.yaml"
    targets = [{"kind": "host", "name": name, "url": host.url} for name, host in hosts.items()]
    guard = {"interference": {"enabled": False}}
    path.write_text(yaml.safe_dump({"lake": lake.uri, "targets": targets, "apply": guard}))
    command = [*arguments, "--plan", "p1", "--config", str(path), "--json"]
    result = CliRunner().invoke(main, command, catch_exceptions=False)
    facts: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, facts


def receipts(lake: Lake, target: str) -> dict[str, dict[str, Any]]:
    rows = lake.read("receipts", {"plan_id": "p1"}).to_pylist()
    return {row["layer"]: row for row in rows if row["target"] == target}


def test_two_generations_of_a_hundred_that_fail_leave_that_host_not_ready(
    lake: Lake, start: Any
) -> None:
    hosts = {"good": start(Steady()), "short": start(Short()), "pair": start(Short(2))}
    code, facts = run(lake, hosts, "apply")
    assert code == 1
    steps = {name: receipts(lake, name)["weights"] for name in hosts}
    assert {name: (row["issued"], row["effective"]) for name, row in steps.items()} == {
        "good": (100, [100]),
        "short": (100, [98]),
        "pair": (100, [100, 98]),
    }
    assert {name: row["status"] for name, row in steps.items()} == {
        "good": "warmed",
        "short": "failed",
        "pair": "failed",
    }
    reasons = {one["target"]: one["reason"] for one in facts["not_ready"]}
    assert set(reasons) == {"short", "pair"}
    assert reasons["short"].startswith(f"{SHORT} 0: not ready")
    assert reasons["pair"].startswith(f"{SHORT} 1: not ready")
    assert facts["layers"]["weights"]["pair"]["issued"] == 200
    assert facts["layers"]["weights"]["pair"]["effective"] == 198
    # What needs the model is warmed where it is ready, and nowhere else.
    assert receipts(lake, "good")["prefixes"]["status"] == "warmed"
    for name in ("short", "pair"):
        assert receipts(lake, name)["prefixes"]["status"] == "failed"
        assert receipts(lake, name)["prefixes"]["error"] == "its model is not ready"
        assert len(hosts[name].prefills) <= 1 < len(hosts["good"].prefills)  # one finds abilities
    _, verified = run(lake, hosts, "verify")
    resident = verified["completion"]["weights"]
    assert {name: part["resident"] for name, part in resident.items()} == {
        "good": 1,
        "short": 0,
        "pair": 0,
    }


def test_resume_steps_through_the_short_host_again(lake: Lake, start: Any) -> None:
    hosts = {"good": start(Steady()), "short": start(Short())}
    run(lake, hosts, "apply")
    sent = len(hosts["good"].requests)
    code, facts = run(lake, hosts, "apply", "--resume")
    assert code == 0
    assert facts["not_ready"] == []
    assert receipts(lake, "short")["weights"]["effective"] == [100]
    assert receipts(lake, "short")["prefixes"]["status"] == "warmed"
    assert len(hosts["good"].requests) - sent < 10


def test_a_restarted_host_is_stepped_through_again(lake: Lake, start: Any) -> None:
    hosts = {"good": start(Steady())}
    run(lake, hosts, "apply")
    hosts["good"].restart()
    assert run(lake, hosts, "verify")[1]["completion"]["weights"]["good"]["resident"] == 0
    run(lake, hosts, "apply", "--resume")
    assert run(lake, hosts, "verify")[1]["completion"]["weights"]["good"]["resident"] == 1


def test_a_spoilt_folder_is_the_reason_and_nothing_is_sent(
    lake: Lake, start: Any, tmp_path: Path
) -> None:
    tensors = healthy(tmp_path / "model")
    write_tensors(
        tmp_path / "model" / "model.safetensors",
        tensors | {"model.norm.weight": ("BF16", (8,))},
    )
    host = start(Steady())
    host.root = str(tmp_path / "model")
    code, facts = run(lake, {"good": host}, "apply")
    assert code == 1
    assert "model.norm.weight: 8, expected 16" in facts["not_ready"][0]["reason"]
    assert all(sent["max_tokens"] != 2 for sent in host.requests)
