"""Residency is proven by looking, and on a host by one probe a receipt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.apply.memory import MemoryHost, MemoryLayer, MemoryTarget, memory_context, plan_item
from warmup_lib.apply.receipts import latest
from warmup_lib.apply.stage import warm
from warmup_lib.errors import TargetUnavailable
from warmup_lib.lake import Lake
from warmup_lib.verify.residency import UNFINISHED, Residency, completion, prove_all

HEADS = [plan_item("prefixes", n) for n in range(1, 8)]
VECTORS = [plan_item("embeddings", n, tenant=t) for t in ("acme", "globex") for n in range(1, 6)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(f"file://{tmp_path}")


def apply(lake: Lake, layer: MemoryLayer, target: Any, items: Any, resume: bool = False) -> None:
    asyncio.run(warm(lake, items, [layer], [target], memory_context(), resume=resume))


def prove(
    lake: Lake, layers: Sequence[MemoryLayer], targets: Sequence[Any], items: Any
) -> tuple[dict[str, bool], dict[str, str], Any]:
    receipts = latest(lake.read("receipts", {"plan_id": "p1"}))
    residency = Residency(lake, receipts, memory_context(concurrency=3), lambda *_: None)
    rows, down = asyncio.run(prove_all(residency, items, layers, targets))
    residency.publish(rows)
    found = {row["item_id"]: row["resident"] for row in rows}
    return found, down, completion(rows, items, layers, targets)


def stored(lake: Lake) -> dict[str, dict[str, Any]]:
    rows = lake.read("residency", {"plan_id": "p1"}).to_pylist()
    assert len(rows) == len({(r["item_id"], r["target"]) for r in rows})
    return {row["item_id"]: row for row in rows}


def test_on_a_host_a_missing_item_never_turns_resident_by_probing(lake: Lake) -> None:
    host, layer = MemoryHost("h"), MemoryLayer("prefixes", "host")
    apply(lake, layer, host, HEADS)
    gone = f"acme:prefixes:{HEADS[0].key_digest}"
    del host.held[gone]

    first, _, complete = prove(lake, [layer], [host], HEADS)
    assert gone in host.held  # the probe warmed it
    assert [first[i.item_id] for i in HEADS] == [False] + [True] * 6
    assert complete["prefixes"]["h"]["resident"] == 6
    again, _, _ = prove(lake, [layer], [host], HEADS)
    assert again == first
    assert len(layer.probed) == 7

    apply(lake, layer, host, HEADS)  # a new receipt gets a new probe
    after, _, _ = prove(lake, [layer], [host], HEADS)
    assert all(after.values())
    assert len(layer.probed) == 14


def test_on_a_redis_every_run_looks_again(lake: Lake) -> None:
    target, layer = MemoryTarget("a"), MemoryLayer("embeddings")
    apply(lake, layer, target, VECTORS)
    assert all(prove(lake, [layer], [target], VECTORS)[0].values())
    del target.held[f"acme:embeddings:{VECTORS[0].key_digest}"]
    found, _, complete = prove(lake, [layer], [target], VECTORS)
    assert list(found.values()).count(False) == 1
    counts = complete["embeddings"]["a"]
    assert (counts["planned"], counts["resident"], counts["completion"]) == (10, 9, 0.9)
    assert counts["tenants"]["acme"] == {"planned": 5, "resident": 4, "completion": 0.8}
    assert counts["tenants"]["globex"]["completion"] == 1.0


def test_items_that_were_not_warmed_are_not_probed_on_a_host(lake: Lake) -> None:
    host, layer = MemoryHost("h"), MemoryLayer("prefixes", "host")
    layer.refuse = {HEADS[0].item_id}
    apply(lake, layer, host, HEADS[:3])
    found, _, _ = prove(lake, [layer], [host], HEADS)
    assert layer.probed == [i.item_id for i in HEADS[1:3]]
    assert [found[i.item_id] for i in HEADS] == [False, True, True] + [False] * 4
    rows = stored(lake)
    assert rows[HEADS[0].item_id]["evidence"] == "not warmed: it is refused"
    assert rows[HEADS[6].item_id]["evidence"] == "no receipt: not applied"
    assert rows[HEADS[6].item_id]["applied_at"] is None


def test_what_a_restarted_host_held_is_lost_without_a_probe(lake: Lake) -> None:
    host, layer = MemoryHost("h"), MemoryLayer("prefixes", "host")
    apply(lake, layer, host, HEADS)
    assert all(prove(lake, [layer], [host], HEADS)[0].values())
    host.run_id = "another process"
    probes = len(layer.probed)
    found, _, _ = prove(lake, [layer], [host], HEADS)
    assert not any(found.values())
    assert len(layer.probed) == probes


def test_a_probe_that_was_cut_off_leaves_its_items_unproven(lake: Lake) -> None:
    host, layer = MemoryHost("h"), MemoryLayer("prefixes", "host")
    apply(lake, layer, host, HEADS)
    host.held.clear()
    real = layer.prove

    async def dies(items: Any, target: Any, context: Any) -> Any:
        proofs = await real(items, target, context)
        if len(layer.probed) > 3:
            raise TargetUnavailable(target.name, "no connection")
        return proofs

    layer.prove = dies  # type: ignore[method-assign]
    _, down, complete = prove(lake, [layer], [host], HEADS)
    assert down == {"h": "no connection"}
    assert complete["prefixes"]["h"]["resident"] == 0
    layer.prove = real  # type: ignore[method-assign]
    found, down, _ = prove(lake, [layer], [host], HEADS)
    assert down == {}
    # Three were probed and missing, three were being probed, one had not been probed yet.
    assert not any(found.values())
    evidence = [stored(lake)[i.item_id]["evidence"] for i in HEADS]
    assert evidence == ["seen"] * 3 + [UNFINISHED] * 3 + ["seen"]


def test_a_target_that_is_down_holds_nothing_and_the_others_are_proven(lake: Lake) -> None:
    good, bad, layer = MemoryTarget("good"), MemoryTarget("bad"), MemoryLayer("embeddings")
    for target in (good, bad):
        apply(lake, layer, target, VECTORS)
    bad.down = True
    _, down, complete = prove(lake, [layer], [good, bad], VECTORS)
    assert down == {"bad": "no connection"}
    assert complete["embeddings"]["good"]["completion"] == 1.0
    assert complete["embeddings"]["bad"]["completion"] == 0.0


def test_layers_without_a_target_have_no_completion(lake: Lake) -> None:
    layers = [MemoryLayer("embeddings"), MemoryLayer("prefixes", "host")]
    _, _, complete = prove(lake, layers, [MemoryTarget("a")], VECTORS + HEADS)
    assert list(complete) == ["embeddings"]
