"""A layer begins where what it needs is resident; what is not resident blocks what needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.apply.memory import (
    MemoryHost,
    MemoryLayer,
    memory_context,
    plan_item,
)
from warmup_lib.apply.stage import warm
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Arranged, Context, Outcome, PlanItem, Proof
from warmup_lib.stage import StageReport


class Needed(MemoryLayer):
    """Models: on one host some warm-up steps may fail, and on any host one may vanish."""

    def __init__(self) -> None:
        super().__init__("weights", "host")
        self.fails_on = ""
        self.gone_on = ""

    async def warm(self, items: Sequence[PlanItem], target: Any, context: Context) -> list[Outcome]:
        outcomes = await super().warm(items, target, context)
        if target.name != self.fails_on:
            return [replace(o, issued=100, effective=[100]) for o in outcomes]
        return [
            replace(o, status="failed", error="98 of 100 worked", issued=100, effective=[98])
            for o in outcomes
        ]

    async def prove(self, items: Sequence[PlanItem], target: Any, context: Context) -> list[Proof]:
        if target.name == self.gone_on:
            return [Proof(item.item_id, False, "it is not served any more") for item in items]
        return await super().prove(items, target, context)


class Needing(MemoryLayer):
    """Heads, each of one model."""

    needs = ("weights", "adapters")

    def __init__(self) -> None:
        super().__init__("prefixes", "host")

    def blocked(self, item: PlanItem, missing: Sequence[PlanItem]) -> str | None:
        assert {m.layer for m in missing} <= set(self.needs)
        return "host not ready" if item.model in {m.model for m in missing} else None


MODELS = [replace(plan_item("weights", n), model=m) for n, m in enumerate("mn", 1)]
HEADS = [replace(plan_item("prefixes", n), model="mn"[n % 2]) for n in range(1, 7)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(f"file://{tmp_path}/lake")


def go(
    lake: Lake, layers: Any, targets: Any, items: Any = (*HEADS, *MODELS), **options: Any
) -> StageReport:
    resume = options.pop("resume", False)
    return asyncio.run(warm(lake, items, layers, targets, memory_context(**options), resume=resume))


def states(lake: Lake, target: str, layer: str) -> dict[tuple[str, str | None, int], int]:
    counts: dict[tuple[str, str | None, int], int] = {}
    for row in lake.read("receipts", {"plan_id": "p1"}).to_pylist():
        if (row["target"], row["layer"]) == (target, layer):
            key = (row["status"], row["error"], row["attempts"])
            counts[key] = counts.get(key, 0) + 1
    return counts


def test_each_host_gets_its_layers_in_order(lake: Lake) -> None:
    hosts = [MemoryHost("a"), MemoryHost("b")]
    report = go(lake, [Needed(), Needing()], hosts)
    rows = lake.read("receipts", {"plan_id": "p1"}).to_pylist()
    for host in hosts:
        ends = {
            layer: [r["at"] for r in rows if r["target"] == host.name and r["layer"] == layer]
            for layer in ("weights", "prefixes")
        }
        assert (len(ends["weights"]), len(ends["prefixes"])) == (2, 6)
        assert max(ends["weights"]) < min(ends["prefixes"])
    took = report.facts["layers"]
    assert list(took) == ["weights", "prefixes"]
    assert took["weights"]["a"] | {"seconds": 0} == {
        "items": 2, "seconds": 0, "bytes": 200, "tokens": 0, "issued": 200, "effective": 200,
    }  # fmt: skip
    assert took["prefixes"]["b"]["items"] == 6
    assert 0 < took["prefixes"]["b"]["seconds"] < report.facts["seconds"]
    assert report.facts["not_ready"] == report.facts["window_over"] == []


def test_two_failed_steps_of_a_hundred_and_the_host_is_not_ready(lake: Lake) -> None:
    needed, needing = Needed(), Needing()
    needed.fails_on = "b"
    hosts = [MemoryHost("a"), MemoryHost("b")]
    report = go(lake, [needed, needing], hosts, [*HEADS, MODELS[0]])
    assert report.facts["not_ready"] == [
        {"target": "b", "layer": "weights", "reason": "98 of 100 worked"}
    ]
    took = report.facts["layers"]["weights"]
    assert (took["b"]["issued"], took["b"]["effective"]) == (100, 98)
    assert (took["a"]["issued"], took["a"]["effective"]) == (100, 100)
    rows = lake.read("receipts", {"plan_id": "p1"}).to_pylist()
    [row] = [r for r in rows if r["target"] == "b" and r["layer"] == "weights"]
    assert (row["issued"], row["effective"]) == (100, [98])
    # Heads of that model are blocked there, with the reason; the other model's are not.
    assert states(lake, "b", "prefixes") == {
        ("failed", "host not ready", 0): 3,
        ("warmed", None, 1): 3,
    }
    assert states(lake, "a", "prefixes") == {("warmed", None, 1): 6}
    assert any("target 'b' is not ready: weights: 98 of 100 worked" in n for n in report.notes)

    needed.fails_on = ""
    again = go(lake, [needed, needing], hosts, [*HEADS, MODELS[0]], resume=True)
    assert (again.facts["warmed"], again.facts["kept"]) == (4, 10)
    assert again.facts["not_ready"] == []
    assert again.facts["completion"]["prefixes"]["b"]["completion"] == 1.0


def test_what_a_receipt_calls_warm_is_still_looked_at(lake: Lake) -> None:
    needed = Needed()
    needed.gone_on = "a"
    report = go(lake, [needed, Needing()], [MemoryHost("a")])
    assert report.facts["not_ready"][0]["reason"] == "it is not served any more"
    assert states(lake, "a", "prefixes") == {("failed", "host not ready", 0): 6}


def test_without_the_needed_layer_in_the_run_nothing_is_blocked(lake: Lake) -> None:
    needed = Needed()
    go(lake, [needed, Needing()], [MemoryHost("a")], HEADS)
    assert states(lake, "a", "prefixes") == {("warmed", None, 1): 6}
    assert needed.probed == []


def test_what_a_target_can_not_have_is_not_waited_for(lake: Lake) -> None:
    class Elsewhere(Needed):
        async def arrange(self, items: Any, *_: Any) -> Arranged:
            away = [Outcome(items[0].item_id, "skipped", error="it is not served here")]
            return Arranged(items[1:], away)

    report = go(lake, [Elsewhere(), Needing()], [MemoryHost("a")])
    assert states(lake, "a", "weights") == {
        ("skipped", "it is not served here", 1): 1,
        ("warmed", None, 1): 1,
    }
    assert states(lake, "a", "prefixes") == {("warmed", None, 1): 6}
    assert report.facts["not_ready"] == []
    assert "target 'a' can't have 1 of layer weights: it is not served here" in report.notes


def test_the_order_that_a_layer_arranges_is_kept_and_asked_for_once(lake: Lake) -> None:
    class Backwards(MemoryLayer):
        asked = 0

        async def arrange(self, items: Any, *_: Any) -> Arranged:
            self.asked += 1
            return Arranged(items[::-1])

    layer = Backwards("prefixes", "host")
    go(lake, [layer], [MemoryHost("a")], HEADS, concurrency=1)
    assert layer.warmed == [item.item_id for item in HEADS[::-1]]
    assert layer.asked == 1


def test_the_window_s_end_stops_it_and_what_is_left_is_missing(lake: Lake) -> None:
    class Slow(MemoryLayer):
        async def warm(self, items: Any, target: Any, context: Any) -> Any:
            await asyncio.sleep(0.3)
            return await super().warm(items, target, context)

    layer, quick = Slow("prefixes", "host"), MemoryLayer("weights", "host")
    report = go(lake, [quick, layer], [MemoryHost("a")], window="1s", concurrency=1)
    counts = report.facts["completion"]["prefixes"]["a"]
    assert 1 <= counts["done"] < 6
    assert counts["missing"] == 6 - counts["done"]
    assert counts["failed"] == 0
    assert report.facts["completion"]["weights"]["a"]["completion"] == 1.0
    assert report.facts["window_over"] == ["a"]
    assert report.facts["unavailable"] == []
    assert report.facts["seconds"] < 1.8
    assert any("window ended before everything was warmed on target 'a'" in n for n in report.notes)
    assert len(lake.read("receipts", {"plan_id": "p1"})) == 2 + counts["done"]
    resumed = go(lake, [quick, layer], [MemoryHost("a")], resume=True)
    assert resumed.facts["completion"]["prefixes"]["a"]["completion"] == 1.0
    assert resumed.facts["window_over"] == []
