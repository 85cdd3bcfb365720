"""A target that is not up at the trigger is waited for, as long as the settings say."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.apply.memory import (
    MemoryHost,
    MemoryLayer,
    MemoryTarget,
    memory_context,
    plan_item,
)
from tests.targets.tiny_host import TinyHost, serving
from warmup_lib.apply import readiness
from warmup_lib.apply.readiness import Readiness
from warmup_lib.apply.stage import warm
from warmup_lib.errors import ConfigError, HostUnavailable, TargetUnavailable
from warmup_lib.lake import Lake
from warmup_lib.stage import StageReport
from warmup_lib.targets.host import ModelHost

ITEMS = [plan_item("embeddings", n) for n in range(1, 11)]
HEADS = [plan_item("prefixes", n) for n in range(1, 5)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(f"file://{tmp_path}/lake")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "POLL_S", 0.02)


def go(lake: Lake, targets: Any, items: Any, layers: Any, **apply: Any) -> StageReport:
    return asyncio.run(warm(lake, items, layers, targets, memory_context(**apply), resume=False))


class Late(MemoryTarget):
    """Comes up half a second after it was first asked."""

    def answer(self) -> None:
        if not self.calls:
            Timer(0.5, lambda: setattr(self, "down", False)).start()
        super().answer()


def test_a_target_that_comes_up_later_is_waited_for_and_the_offset_told(lake: Lake) -> None:
    early, late = MemoryTarget("early"), Late("late", down=True)
    report = go(lake, [early, late], ITEMS, [MemoryLayer("embeddings")])
    assert len(early.held) == len(late.held) == 10
    assert report.facts["unavailable"] == []
    told = report.facts["readiness"]
    assert (told["early"]["waited"], told["late"]["waited"]) == (False, True)
    assert told["early"]["ready_after_ms"] < 400 < told["late"]["ready_after_ms"] < 5000
    assert told["early"]["triggered_at"] == told["late"]["triggered_at"]
    [note] = [n for n in report.notes if "was not ready when warming was triggered" in n]
    assert "'late'" in note
    assert f"{told['late']['ready_after_ms']:,.0f} ms" in note


def test_the_others_do_not_wait_for_it(lake: Lake) -> None:
    early, never = MemoryTarget("early"), MemoryTarget("never", down=True)
    done: list[float] = []
    layer = MemoryLayer("embeddings")
    layer.before_batch = lambda _: done.append(time.monotonic())
    began = time.monotonic()
    report = go(lake, [early, never], ITEMS, [layer], ready_timeout="1s")
    assert max(done) - began < 0.8 < time.monotonic() - began
    assert report.facts["unavailable"] == [{"target": "never", "reason": "no connection"}]
    assert report.facts["readiness"]["never"] == {
        "triggered_at": report.facts["readiness"]["early"]["triggered_at"],
        "ready_after_ms": None,
        "waited": True,
    }
    rows = lake.read("receipts", {"plan_id": "p1"}).to_pylist()
    missed = [r for r in rows if r["target"] == "never"]
    assert len(missed) == 10
    assert {(r["status"], r["attempts"], r["error"]) for r in missed} == {
        ("failed", 0, "no connection")
    }


def test_what_another_target_must_answer_waits_for_that_one(lake: Lake) -> None:
    host = MemoryHost("gpu", down=True)

    class Generating(MemoryLayer):
        """Asks the host for every answer."""

        async def warm(self, items: Any, target: Any, context: Any) -> Any:
            if host.down:
                raise HostUnavailable("gpu", "no connection")
            return await super().warm(items, target, context)

    Timer(0.6, lambda: setattr(host, "down", False)).start()
    cache = MemoryTarget("cache")
    layers = [Generating("embeddings"), MemoryLayer("prefixes", "host")]
    report = go(lake, [cache, host], ITEMS + HEADS, layers, attempts=1)
    assert (len(cache.held), len(host.held)) == (10, 4)
    assert report.facts["unavailable"] == []
    assert report.facts["readiness"]["gpu"]["waited"]


def test_receipts_of_before_stay_where_a_target_does_not_come_up(lake: Lake) -> None:
    target, layer = MemoryTarget("a"), MemoryLayer("embeddings")
    go(lake, [target], ITEMS[:6], [layer])
    target.down = True
    report = go(lake, [target], ITEMS, [layer], ready_timeout="1s")
    states = [r["status"] for r in lake.read("receipts", {"plan_id": "p1"}).to_pylist()]
    assert (states.count("warmed"), states.count("failed")) == (6, 4)
    counts = report.facts["completion"]["embeddings"]["a"]
    assert (counts["done"], counts["already"], counts["missing"], counts["failed"]) == (0, 0, 6, 4)


def test_a_window_shorter_than_the_wait_ends_it(lake: Lake) -> None:
    began = time.monotonic()
    down = MemoryTarget("a", down=True)
    report = go(lake, [down], ITEMS, [MemoryLayer("embeddings")], window="1s")
    assert time.monotonic() - began < 5
    assert [one["target"] for one in report.facts["unavailable"]] == ["a"]


def waits(tiny: TinyHost, timeout_s: float = 5.0) -> dict[str, Any]:
    async def ready() -> dict[str, Any]:
        host = ModelHost("gpu", tiny.url, api_key="k")
        asked = Readiness([host], timeout_s)
        assert asked.pending("gpu")
        try:
            await asked.ready("gpu")
        finally:
            await host.close()
        assert not asked.pending("gpu")
        assert not asked.pending("another")
        return asked.facts()["gpu"]

    return asyncio.run(ready())


def test_a_host_is_ready_once_it_is_healthy_and_serves_a_model() -> None:
    tiny = TinyHost()
    with serving(tiny):
        assert waits(tiny)["waited"] is False
        tiny.status["/health"] = 503
        models, tiny.models = tiny.models, []
        Timer(0.2, tiny.status.clear).start()
        Timer(0.5, lambda: setattr(tiny, "models", models)).start()
        told = waits(tiny)
        assert told["waited"]
        assert told["ready_after_ms"] >= 300
        tiny.models = []
        with pytest.raises(TargetUnavailable, match="it serves no model"):
            waits(tiny, 0.2)


def test_a_host_that_refuses_the_key_is_not_waited_for() -> None:
    with serving(TinyHost()) as tiny:
        tiny.status["/v1/models"] = 401
        with pytest.raises(ConfigError, match="'gpu' refuses the key"):
            waits(tiny)
