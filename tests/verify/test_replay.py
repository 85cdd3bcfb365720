"""Replay finds what an application would find, and a control finds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.apply.memory import (
    MemoryHost,
    MemoryLayer,
    MemoryTarget,
    MemoryVectors,
    memory_context,
    plan_item,
)
from tests.verify.world import request, requests
from warmup_lib.config import Config
from warmup_lib.layers.base import Context, Lookup, Match
from warmup_lib.verify.replay import Replayed, on_hosts, on_store
from warmup_lib.verify.vectors import WindowVectors


def context(host_sample: int = 50, cold_sample: int = 10, adapters: Sequence[str] = ()) -> Context:
    settings = {"host_sample": host_sample, "cold_sample": cold_sample}
    models = {adapter: adapter for adapter in adapters}
    host = {"kind": "host", "name": "h", "url": "http://h", "models": models}
    config = Config.model_validate({"verify": settings, "targets": [host]})
    known = memory_context()
    return Context(known.plan_id, config, known.keys, known.vectors)


def warm(layer: MemoryLayer, target: Any, answers: Sequence[int]) -> set[str]:
    items = [plan_item(layer.name, n) for n in answers]
    asyncio.run(layer.warm(items, target, context()))
    return {item.item_id for item in items}


def vectors() -> WindowVectors:
    def encode(texts: Sequence[str]) -> Any:
        return np.zeros((len(texts), 2), np.float32), np.zeros(len(texts), bool)

    return WindowVectors(MemoryVectors(), encode)


def store(layer: Any, target: Any, rows: Any, planned: set[str], **options: Any) -> Replayed:
    said = options.pop("said", lambda *_: None)
    return asyncio.run(on_store(layer, target, rows, context(**options), vectors(), planned, said))


def test_every_request_is_looked_up_and_the_control_finds_nothing() -> None:
    layer, target = MemoryLayer("responses"), MemoryTarget("a")
    planned = warm(layer, target, range(5))
    rows = requests(*[request(n, n % 10) for n in range(600)])
    said: list[Any] = []
    found = store(layer, target, rows, planned, said=lambda *row: said.append(row))
    assert len(found.rows) == 600
    assert sum(r["hit"] for r in found.rows) == 300
    assert {r["match"] for r in found.rows} == {"exact", None}
    assert {r["item_id"] for r in found.rows if r["hit"]} == planned
    assert (found.control_asked, found.control_hits) == (10, 0)
    assert said[-1] == ("replay responses on a", 600, 600)


def test_an_entry_that_is_not_of_this_plan_is_no_hit_of_it() -> None:
    layer, target = MemoryLayer("responses"), MemoryTarget("a")
    planned = warm(layer, target, [1])
    warm(layer, target, [2])
    rows = requests(request(1, 1), request(2, 2), request(3, 3))
    found = store(layer, target, rows, planned)
    assert [r["hit"] for r in found.rows] == [True, False, False]
    assert found.others == 1
    assert found.rows[1]["item_id"] is None


def test_a_control_that_hits_is_counted() -> None:
    class Leaky(MemoryLayer):
        """Forgets to take the control's namespace into its keys."""

        def _key(self, context: Context, tenant: str, digest: str) -> str:  # noqa: ARG002
            return f"{tenant}:{digest}"

    layer, target = Leaky("responses"), MemoryTarget("a")
    planned = warm(layer, target, [1])
    found = store(layer, target, requests(request(1, 1), request(2, 2)), planned)
    assert (found.control_asked, found.control_hits) == (2, 1)


def test_the_layer_is_told_which_entries_are_of_this_plan() -> None:
    class Told(MemoryLayer):
        async def find(
            self, lookups: Sequence[Lookup], target: Any, context: Context
        ) -> list[Match]:
            told.append((context.control is not None, context.planned))
            return await super().find(lookups, target, context)

    told: list[tuple[bool, frozenset[str]]] = []
    layer, target = Told("responses"), MemoryTarget("a")
    planned = warm(layer, target, [1, 2])
    store(layer, target, requests(request(1, 1)), planned)
    assert told == [(False, planned), (True, planned)]


def test_only_a_layer_that_matches_by_similarity_gets_vectors() -> None:
    class Seeing(MemoryLayer):
        seen: list[Any] = []  # noqa: RUF012

        async def find(
            self, lookups: Sequence[Lookup], target: Any, context: Context
        ) -> list[Match]:
            self.seen += [lookup.vector for lookup in lookups]
            return await super().find(lookups, target, context)

    for match in ("exact", "semantic"):
        layer = Seeing("responses")
        layer.match = match  # type: ignore[assignment]
        Seeing.seen = []
        store(layer, MemoryTarget("a"), requests(request(1, 1)), set(), cold_sample=1)
        assert [vector is not None for vector in Seeing.seen] == [match == "semantic"] * 2


def hosts(
    layer: Any,
    targets: Any,
    rows: Any,
    planned: set[str],
    heads: Any,
    *,
    down: dict[str, str] | None = None,
    room: dict[str, int] | None = None,
    **options: Any,
) -> Any:
    heads = {f"{head:032x}" for head in heads}
    return asyncio.run(
        on_hosts(
            layer,
            targets,
            rows,
            context(**options),
            heads,
            {target.name: planned for target in targets},
            room or {},
            {} if down is None else down,
            lambda *_: None,
        )
    )


def test_a_head_that_the_sample_itself_made_warm_is_no_hit() -> None:
    layer, host = MemoryLayer("prefixes", "host"), MemoryHost("h")
    planned = warm(layer, host, [1])
    rows = requests(*[request(n, n % 2) for n in range(20)])
    found = hosts(layer, [host], rows, planned, [1], cold_sample=6)
    assert len(found.rows) == 20
    assert sum(r["hit"] for r in found.rows) == 10
    assert found.others == 9  # head 0, warm since its first request
    assert found.lost == 0
    assert found.control_hits == 0


def test_some_requests_are_sent_cold_too_in_turns_before_and_after() -> None:
    layer, host = MemoryLayer("prefixes", "host"), MemoryHost("h")
    planned = warm(layer, host, [1])
    order: list[tuple[str, bool]] = []
    real = layer.find

    async def find(lookups: Any, target: Any, context: Context) -> Any:
        order.append((lookups[0].request_id, context.control is not None))
        return await real(lookups, target, context)

    layer.find = find  # type: ignore[method-assign]
    rows = requests(*[request(n, 1) for n in range(4)])
    found = hosts(layer, [host], rows, planned, [1], cold_sample=4)
    assert [cold for _, cold in order] == [True, False, False, True, True, False, False, True]
    assert [r for r, _ in order] == ["r0", "r0", "r1", "r1", "r2", "r2", "r3", "r3"]
    assert found.control_asked == 4
    assert {r["cold_ttft_ms"] for r in found.rows} == {100.0}
    assert {r["warm_ttft_ms"] for r in found.rows} == {10.0}


def test_hosts_take_turns_and_one_that_lacks_the_model_is_passed_over() -> None:
    class Picky(MemoryLayer):
        async def find(
            self, lookups: Sequence[Lookup], target: Any, context: Context
        ) -> list[Match]:
            if lookups[0].model not in target.models:
                return [Match(lookups[0].request_id, False)]
            return await super().find(lookups, target, context)

    layer = Picky("prefixes", "host")
    both, one = MemoryHost("both"), MemoryHost("one")
    both.models, one.models = {"m", "n"}, {"m"}  # type: ignore[attr-defined]
    rows = requests(
        *[request(n, 1) for n in range(4)],
        *[request(n, 1, model="n") for n in range(4, 8)],
        request(8, 1, model="other"),
    )
    found = hosts(layer, [both, one], rows, set(), [], cold_sample=1)
    assert [r["target"] for r in found.rows] == ["both", "one"] * 2 + ["both"] * 4
    assert found.unserved == 1
    # What no host could be asked is not compared with either.
    assert found.requests["request_id"].to_pylist() == [r["request_id"] for r in found.rows]


def test_each_host_is_asked_cold_too_before_and_after() -> None:
    layer = MemoryLayer("prefixes", "host")
    order: list[tuple[str, str, bool]] = []
    real = layer.find

    async def find(lookups: Any, target: Any, context: Context) -> Any:
        order.append((lookups[0].request_id, target.name, context.control is not None))
        return await real(lookups, target, context)

    layer.find = find  # type: ignore[method-assign]
    both = [MemoryHost("a"), MemoryHost("b")]
    rows = requests(*[request(n, 1) for n in range(16)])
    found = hosts(layer, both, rows, set(), [1], cold_sample=8)
    assert found.control == {"a": {"asked": 4, "hits": 0}, "b": {"asked": 4, "hits": 0}}
    pairs = [
        (host, cold)
        for (asked, host, cold), (again, other, _) in pairwise(order)
        if asked == again and host == other
    ]
    assert sorted(pairs) == sorted((h, cold) for h in "ab" for cold in (True, False) for _ in "12")


def test_a_host_that_dies_meanwhile_gets_no_more_and_the_others_go_on() -> None:
    layer = MemoryLayer("prefixes", "host")
    dying, other = MemoryHost("dying"), MemoryHost("other")
    real = layer.find
    asked = []

    async def find(lookups: Any, target: Any, context: Context) -> Any:
        asked.append(target.name)
        dying.down = asked.count("dying") >= 4
        return await real(lookups, target, context)

    layer.find = find  # type: ignore[method-assign]
    down: dict[str, str] = {}
    rows = requests(*[request(n, 1) for n in range(20)])
    found = hosts(layer, [dying, other], rows, set(), [], down=down, cold_sample=2)
    assert down == {"dying": "no connection"}
    assert len(found.rows) == 20
    assert asked.count("dying") == 4
    assert {r["target"] for r in found.rows[10:]} == {"other"}
    other.down = True
    none = hosts(layer, [dying, other], rows, set(), [], down=down)
    assert (none.rows, none.requests.num_rows) == ([], 0)
    assert set(down) == {"dying", "other"}


def test_requests_for_adapters_that_no_host_serves_take_no_place_in_the_sample() -> None:
    layer, host = MemoryLayer("prefixes", "host"), MemoryHost("h")
    rows = requests(
        *[request(n, 1, adapter="away") for n in range(30)],
        *[request(n, 1, adapter="lora") for n in range(30, 34)],
        *[request(n, 1) for n in range(34, 38)],
    )
    options: dict[str, Any] = {"adapters": ["lora"], "host_sample": 8, "cold_sample": 2}
    found = hosts(layer, [host], rows, set(), [], **options)
    assert [r["request_id"] for r in found.rows] == [f"r{n}" for n in range(30, 38)]
    assert found.requests["request_id"].to_pylist() == [f"r{n}" for n in range(30, 38)]
    assert (found.unserved, found.control_asked) == (30, 2)
    none = hosts(layer, [host], rows.slice(0, 30), set(), [], **options)
    assert (none.rows, none.requests.num_rows, none.unserved) == ([], 0, 30)


def test_a_planned_head_that_was_evicted_is_counted() -> None:
    layer, host = MemoryLayer("prefixes", "host"), MemoryHost("h")
    planned = warm(layer, host, [1])
    host.held.clear()
    found = hosts(layer, [host], requests(request(1, 1), request(2, 2)), planned, [1])
    assert found.lost == 1


@pytest.mark.parametrize("size", [3, 12])
def test_the_sample_keeps_to_its_size(size: int) -> None:
    layer = MemoryLayer("prefixes", "host")
    rows = requests(*[request(n, n) for n in range(40)])
    found = hosts(layer, [MemoryHost("h")], rows, set(), [], host_sample=size, cold_sample=2)
    assert len(found.rows) == size
    assert found.control_asked == 2
