"""A plan is warmed on every target that can take it, and each item leaves one receipt."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.apply.memory import (
    MemoryHost,
    MemoryLayer,
    MemoryTarget,
    memory_context,
    plan_item,
    plan_table,
)
from warmup_lib.apply import worker
from warmup_lib.apply.lock import LakeLock
from warmup_lib.apply.opened import read_items
from warmup_lib.apply.stage import run, warm
from warmup_lib.config import Config
from warmup_lib.errors import HostUnavailable, InputDataError, Superseded
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem
from warmup_lib.stage import StageReport


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(f"file://{tmp_path}/lake")


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_WAIT", worker.tenacity.wait_none())


ITEMS = [plan_item("embeddings", n) for n in range(1, 31)] + [
    plan_item("responses", n) for n in range(1, 11)
]
HEADS = [plan_item("prefixes", n) for n in range(1, 8)]


def go(lake: Lake, layers: Any, targets: Any, items: Any = ITEMS, **options: Any) -> StageReport:
    resume = options.pop("resume", False)
    plan_id = options.pop("plan_id", "p1")
    progress = options.pop("progress", lambda *_: None)
    context = memory_context(plan_id, **options)
    return asyncio.run(
        warm(lake, items, layers, targets, context, resume=resume, progress=progress)
    )


def receipts(lake: Lake, plan_id: str = "p1") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.read("receipts", {"plan_id": plan_id}).to_pylist()
    return rows


def statuses(lake: Lake, target: str) -> dict[str, str]:
    return {r["item_id"]: r["status"] for r in receipts(lake) if r["target"] == target}


def test_every_item_is_warmed_on_every_target_of_its_kind(lake: Lake) -> None:
    layers = [MemoryLayer("prefixes", "host"), MemoryLayer("embeddings"), MemoryLayer("responses")]
    targets = [MemoryTarget("a"), MemoryTarget("b"), MemoryHost("h")]
    report = go(lake, layers, targets, ITEMS + HEADS)

    assert len(targets[0].held) == len(targets[1].held) == 40
    assert len(targets[2].held) == 7
    rows = receipts(lake)
    assert len(rows) == len({(r["item_id"], r["target"]) for r in rows}) == 87
    assert report.rows_out == report.rows_in == 87
    assert report.facts["warmed"] == 87
    assert report.facts["bytes"] == 8700
    assert report.facts["unavailable"] == report.facts["skipped_layers"] == []
    counts = report.facts["completion"]["embeddings"]["b"]
    assert (counts["planned"], counts["done"], counts["completion"]) == (30, 30, 1.0)


def test_layers_reach_a_target_in_order_and_items_by_rank(lake: Lake) -> None:
    seen: list[str] = []
    layers = [MemoryLayer("embeddings"), MemoryLayer("responses")]
    for layer in layers:
        layer.before_batch = lambda of: seen.append(of.name)
    go(lake, layers, [MemoryTarget("a")], list(reversed(ITEMS)), concurrency=1)
    assert seen == sorted(seen)
    assert layers[0].warmed == [item.item_id for item in ITEMS[:30]]


@pytest.mark.parametrize("concurrency", [1, 5])
def test_no_more_batches_are_in_flight_than_allowed(lake: Lake, concurrency: int) -> None:
    layer = MemoryLayer("embeddings")
    go(lake, [layer], [MemoryTarget("a")], batch=2, concurrency=concurrency)
    assert layer.most_in_flight == concurrency


def test_a_target_that_is_down_is_given_up_and_the_others_go_on(lake: Lake) -> None:
    good, bad = MemoryTarget("good"), MemoryTarget("bad")
    layer = MemoryLayer("embeddings")

    def die(_: MemoryLayer) -> None:
        bad.down = len(bad.held) >= 8

    layer.before_batch = die
    report = go(lake, [layer], [good, bad], concurrency=1)

    assert report.facts["unavailable"] == [{"target": "bad", "reason": "no connection"}]
    assert any("'bad' was given up" in note for note in report.notes)
    assert set(statuses(lake, "good").values()) == {"warmed"}
    assert len(statuses(lake, "good")) == 30
    left = list(statuses(lake, "bad").values())
    assert (left.count("warmed"), left.count("failed"), len(left)) == (8, 22, 30)
    failed = [r for r in receipts(lake) if r["status"] == "failed"]
    # Four were tried, the others never left; all of them carry the reason.
    assert sorted(r["attempts"] for r in failed) == [0] * 18 + [2] * 4
    assert {r["error"] for r in failed} == {"no connection"}

    bad.down, layer.before_batch = False, None
    layer.warmed.clear()
    again = go(lake, [layer], [good, bad], resume=True)
    assert len(layer.warmed) == 22
    assert again.facts["kept"] == 38
    assert again.facts["completion"]["embeddings"]["bad"]["completion"] == 1.0
    assert len(receipts(lake)) == 60


def test_a_short_outage_costs_a_retry_and_no_receipt(lake: Lake) -> None:
    target, layer = MemoryTarget("a"), MemoryLayer("embeddings")
    outages = iter([True])
    layer.before_batch = lambda _: setattr(target, "down", next(outages, False))
    # The fake clears the outage only at the next batch; the epoch asked before it must not fail.
    real = target.epoch

    async def epoch() -> str:
        target.down = False
        return await real()

    target.epoch = epoch  # type: ignore[method-assign]
    report = go(lake, [layer], [target], concurrency=1)
    assert report.facts["unavailable"] == []
    tries = sorted(r["attempts"] for r in receipts(lake))
    assert (tries.count(2), tries.count(1)) == (4, 26)


def test_items_a_layer_could_not_warm_are_failed_and_tried_again_on_resume(lake: Lake) -> None:
    target, layer = MemoryTarget("a"), MemoryLayer("embeddings")
    layer.refuse = {ITEMS[3].item_id}
    report = go(lake, [layer], [target])
    counts = report.facts["completion"]["embeddings"]["a"]
    assert (counts["done"], counts["failed"]) == (29, 1)
    assert counts["completion"] == pytest.approx(29 / 30)
    assert "target 'a': 1 of layer embeddings failed: it is refused" in report.notes
    layer.refuse, layer.warmed = set(), []
    go(lake, [layer], [target], resume=True)
    assert layer.warmed == [ITEMS[3].item_id]
    assert set(statuses(lake, "a").values()) == {"warmed"}


def test_another_target_that_some_items_need_does_not_hold_up_the_rest(lake: Lake) -> None:
    needy = {item.item_id for item in ITEMS[:30:10]}

    class Generating(MemoryLayer):
        """Asks a host for some answers, and the host is down."""

        async def warm(self, items: Any, target: Any, context: Any) -> Any:
            if needy & {item.item_id for item in items}:
                raise HostUnavailable("gpu", "no connection")
            return await super().warm(items, target, context)

    layer = Generating("embeddings")
    report = go(lake, [layer], [MemoryTarget("a")])
    counts = report.facts["completion"]["embeddings"]["a"]
    assert (counts["done"], counts["failed"], counts["missing"]) == (27, 3, 0)
    assert report.facts["unavailable"] == [{"target": "gpu", "reason": "no connection"}]
    assert any("need target 'gpu', which does not answer" in note for note in report.notes)
    failed = [r for r in receipts(lake) if r["status"] == "failed"]
    assert {r["item_id"] for r in failed} == needy
    assert {r["error"] for r in failed} == {"target 'gpu' is not available: no connection"}
    needy.clear()
    assert go(lake, [layer], [MemoryTarget("a")], resume=True).facts["unavailable"] == []


def test_resume_warms_what_was_evicted_and_nothing_else(lake: Lake) -> None:
    target, layer = MemoryTarget("a"), MemoryLayer("embeddings")
    go(lake, [layer], [target])
    layer.warmed.clear()
    for item in ITEMS[:3]:
        del target.held[f"acme:embeddings:{item.key_digest}"]
    report = go(lake, [layer], [target], resume=True)
    assert sorted(layer.warmed) == sorted(item.item_id for item in ITEMS[:3])
    assert (report.facts["warmed"], report.facts["kept"]) == (3, 27)


def test_resume_gives_a_restarted_target_all_its_items(lake: Lake) -> None:
    target, layer = MemoryTarget("a"), MemoryLayer("embeddings")
    go(lake, [layer], [target])
    old = {r["target_epoch"] for r in receipts(lake)}
    target.restart()
    layer.warmed.clear()
    go(lake, [layer], [target], resume=True)
    assert len(layer.warmed) == 30
    assert {r["target_epoch"] for r in receipts(lake)}.isdisjoint(old)


def test_resume_on_a_host_believes_fresh_receipts_and_never_looks(lake: Lake) -> None:
    host, layer = MemoryHost("h"), MemoryLayer("prefixes", "host")
    go(lake, [layer], [host], HEADS)
    layer.warmed.clear()
    go(lake, [layer], [host], HEADS, resume=True)
    assert layer.warmed == layer.probed == []
    expired = [plan_item("prefixes", n, ttl_s=0) for n in range(1, 8)]
    go(lake, [layer], [host], expired, resume=True)
    assert len(layer.warmed) == 7
    assert layer.probed == []


def test_a_plain_apply_refreshes_everything_but_other_layers_receipts_stay(lake: Lake) -> None:
    layers = [MemoryLayer("embeddings"), MemoryLayer("responses")]
    target = MemoryTarget("a")
    go(lake, layers, [target])
    before = {r["item_id"]: r["at"] for r in receipts(lake)}
    go(lake, layers, [target], ITEMS[:30])
    after = {r["item_id"]: r["at"] for r in receipts(lake)}
    assert after.keys() == before.keys()
    assert all(after[i.item_id] > before[i.item_id] for i in ITEMS[:30])
    assert all(after[i.item_id] == before[i.item_id] for i in ITEMS[30:])


def test_a_newer_plan_stops_this_one_at_its_next_batch(lake: Lake) -> None:
    target, layer = MemoryTarget("a"), MemoryLayer("embeddings")

    def newer(of: MemoryLayer) -> None:
        if len(of.warmed) >= 12:
            target.owner = "p2"

    layer.before_batch = newer
    with pytest.raises(Superseded, match="plan p2 has begun on target 'a'"):
        go(lake, [layer], [target], concurrency=1)
    assert len(layer.warmed) == 16
    assert len(receipts(lake)) == 16


def test_a_newer_plan_stops_this_one_on_a_host_that_keeps_no_record(lake: Lake) -> None:
    host = MemoryHost("h")
    layer, other = MemoryLayer("prefixes", "host"), MemoryLayer("prefixes", "host")
    context = memory_context("p2")

    async def both() -> None:
        async def second() -> None:
            from warmup_lib.apply.generation import Generation

            while len(layer.warmed) < 2:
                await asyncio.sleep(0.001)
            await Generation(lake, host, "p2").claim()
            await other.warm(HEADS, host, context)

        first = warm(
            lake, HEADS, [layer], [host], memory_context("p1", concurrency=1), resume=False
        )
        results = await asyncio.gather(first, second(), return_exceptions=True)
        assert isinstance(results[0], Superseded)

    asyncio.run(both())
    assert 2 <= len(layer.warmed) < 7


def test_a_target_in_use_by_another_apply_is_reported_and_left_alone(lake: Lake) -> None:
    async def held() -> StageReport:
        async with LakeLock(lake, "target-a"):
            context = memory_context()
            layer = MemoryLayer("embeddings")
            return await warm(lake, ITEMS, [layer], [MemoryTarget("a")], context, resume=False)

    report = asyncio.run(held())
    assert report.facts["unavailable"][0]["target"] == "a"
    assert "in use by process" in report.facts["unavailable"][0]["reason"]
    assert receipts(lake) == []


def test_a_target_that_restarts_meanwhile_is_not_called_done(lake: Lake) -> None:
    target, layer = MemoryTarget("a"), MemoryLayer("embeddings")
    at_half = iter([False] * 4 + [True])
    layer.before_batch = lambda _: target.restart() if next(at_half, False) else None
    report = go(lake, [layer], [target], concurrency=1)
    assert "restarted while it was being warmed" in report.facts["unavailable"][0]["reason"]
    go(lake, [layer], [target], resume=True)
    assert len(target.held) == 30


def test_layers_without_a_target_are_named(lake: Lake) -> None:
    layers = [MemoryLayer("prefixes", "host"), MemoryLayer("embeddings")]
    report = go(lake, layers, [MemoryTarget("a")], ITEMS[:30] + HEADS)
    assert report.facts["skipped_layers"] == ["prefixes"]
    assert "prefixes" not in report.facts["completion"]
    assert report.notes == ("layer prefixes was left out: no target can take it",)


def test_an_unforeseen_error_keeps_receipts_and_comes_out_as_it_is(lake: Lake) -> None:
    layer = MemoryLayer("embeddings")

    def broken(of: MemoryLayer) -> None:
        if len(of.warmed) >= 8:
            raise ZeroDivisionError

    layer.before_batch = broken
    with pytest.raises(ZeroDivisionError):
        go(lake, [layer], [MemoryTarget("a")], concurrency=1)
    assert len(receipts(lake)) == 8


def test_progress_counts_every_item_once_and_ends_at_the_total(lake: Lake) -> None:
    said: list[tuple[str, int, int | None]] = []
    go(
        lake,
        [MemoryLayer("embeddings")],
        [MemoryTarget("a")],
        ITEMS[:30],
        progress=lambda *row: said.append(row),
    )
    assert said[-1] == ("apply a", 30, 30)
    assert [done for _, done, _ in said] == sorted({done for _, done, _ in said})


def test_a_missing_plan_names_the_known_ones(lake: Lake, tmp_path: Path) -> None:
    config, keys = Config(lake=f"file://{tmp_path}/lake"), Keys(b"0123456789abcdef")
    with pytest.raises(InputDataError, match="run `warmup plan` first"):
        asyncio.run(run(lake, "nope", config, keys))
    lake.replace("plan", {"plan_id": "p1"}, plan_table(ITEMS))
    with pytest.raises(InputDataError, match="no such plan: nope; there are p1"):
        asyncio.run(run(lake, "nope", config, keys))
    with pytest.raises(InputDataError, match="holds nothing in prefixes; it holds embeddings"):
        asyncio.run(run(lake, "p1", config, keys, layers=["prefixes"]))
    assert read_items(lake, "p1", ["responses"]) == ITEMS[30:]


class Asking(MemoryLayer):
    """Answers without a text in the plan are asked of a host."""

    def asks_host(self, item: PlanItem) -> bool:
        return item.response is None


def test_what_asks_a_host_waits_until_its_adapters_are_loaded(lake: Lake) -> None:
    adapters, responses = MemoryLayer("adapters", "host"), Asking("responses")
    loaded = [plan_item("adapters", n) for n in range(9)]
    told, asked = plan_item("responses", 1), replace(plan_item("responses", 2), response=None)
    seen: list[str] = []
    adapters.before_batch = lambda _: seen.append("adapter")
    responses.before_batch = lambda _: seen.append("answer")
    items = [*loaded, told, asked]
    go(lake, [adapters, responses], [MemoryTarget("a"), MemoryHost("h")], items, concurrency=1)
    assert responses.warmed == [told.item_id, asked.item_id]
    assert seen.index("answer") < 9
    assert seen[-1] == "answer"


def test_what_asks_a_host_does_not_wait_for_one_that_was_given_up(lake: Lake) -> None:
    host = MemoryHost("h", down=True)
    layers = [MemoryLayer("adapters", "host"), Asking("responses")]
    asked = replace(plan_item("responses", 2), response=None)
    items = [plan_item("adapters", 1), asked]
    go(lake, layers, [MemoryTarget("a"), host], items, ready_timeout="1s")
    assert layers[1].warmed == [asked.item_id]
