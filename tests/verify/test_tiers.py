"""Tiers are counted apart from their layers: only requests that ask for such an entry count."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from tests.apply.memory import plan_table
from tests.apply.server import Server
from tests.layers.building import DictVectors
from tests.layers.test_retrieval import World, lists
from tests.layers.test_segments import segments
from tests.verify.world import request, requests
from warmup_lib.apply.stage import warm
from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.registry import LAYERS
from warmup_lib.tables import HEADS, MICRO
from warmup_lib.targets.store import RedisStore
from warmup_lib.verify import measures
from warmup_lib.verify.audit import notes
from warmup_lib.verify.measuring import Subject
from warmup_lib.verify.stage import verify
from warmup_lib.verify.window import from_lake

PLAN_DAY, LATER = "2026-03-14", "2026-03-15"
KEYS = Keys(b"a secret of the tests of tiers!!")
SYSTEM = "You are the help desk of Acme."


def row(tier: str | None, hit: bool, tenant: str = "acme", share: float | None = None) -> Any:
    return {"layer": "embeddings", "tier": tier, "hit": hit, "tenant": tenant, "share": share}


def test_each_tier_has_a_ratio_of_its_own() -> None:
    rows = [row(None, True), row(None, False), row("L1", True), row("L1", False, "beta")]
    rows += [row("L3", True, share=0.5), row("L3", True, share=1.0), row("L3", False)]
    found = measures.tiers(rows)
    assert found["L1"] == {
        "layer": "embeddings",
        "requests": 2,
        "hits": 1,
        "hit_ratio": 0.5,
        "share": None,
        "tenants": {"acme": 1.0, "beta": 0.0},
    }
    assert (found["L3"]["requests"], found["L3"]["hits"], found["L3"]["share"]) == (3, 2, 0.75)
    assert list(found) == ["L1", "L3"]
    assert len(measures.main_rows(rows)) == 2
    assert measures.tiers(rows[:2]) == {}


def test_a_list_that_a_search_would_not_give_is_told_of() -> None:
    audits = {"retrieval": {"cache": {"lists_checked": 9, "lists_equal": 7}}}
    assert notes(audits) == [
        "2 of 9 chunk lists on 'cache' are not what a fresh search gives: warm them again"
    ]
    audits["retrieval"]["cache"]["lists_equal"] = 9
    assert notes(audits) == []


@pytest.fixture
def server(stack_artifacts: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "redis", stack_artifacts)
    yield server
    server.stop()


def plan(world: World) -> list[PlanItem]:
    """Return items of all tiers: a system prompt, a segment, chunks and lists."""
    head: dict[str, Any] = dict.fromkeys(HEADS.schema.names)
    head |= {"tenant": "acme", "model": "m", "head_digest": "h" * 32, "system_prompt": SYSTEM}
    schema = HEADS.schema.append(pa.field("heat_micro", pa.int64()))
    heads = pa.Table.from_pylist([{**head, "heat_micro": MICRO}], schema)
    asked: Demand = segments(KEYS, ("acme", "vip", "t-x", 1))
    of = replace(world.demand(), heads=heads, segments=asked.segments)
    vectors = DictVectors(world.vectors.encoder, world.vectors.dimension)
    vectors.held = {**world.vectors.held, "t-x": np.eye(1, 16, dtype=np.float32)[0]}
    of = replace(of, vectors=vectors)
    settings = Config.model_validate({"layers": {"retrieval": {"top": 3}}})
    tables = [LAYERS[name].candidates(of, settings) for name in ("embeddings", "retrieval")]
    return [item for table in tables for item in PlanItem.rows(table)]


@pytest.mark.stack
def test_later_traffic_is_measured_on_each_tier(tmp_path: Path, server: Server) -> None:
    world = World(KEYS)
    items = plan(world)
    medoid = "acme question 0"
    [known] = [i for i in lists(items) if i.key_digest == KEYS.text_digest(medoid)]
    retrieved = {"prompt": medoid, "text_digest": KEYS.text_digest(medoid)}
    rows = [
        request(1, 1, head_digest="h" * 32, user_segment="vip"),
        request(2, 2, head_digest="i" * 32, user_segment="trial"),
        request(3, 3, head_digest="h" * 32, system_prompt=None),
        request(4, 4, system_prompt=None, chunk_ids=list(known.chunk_ids or ()), **retrieved),
        request(5, 5, system_prompt=None, chunk_ids=["gone"], **retrieved),
        request(6, 6, system_prompt=None, tenant="nobody", chunk_ids=["gone"], **retrieved),
    ]
    lake = Lake(f"file://{tmp_path}/lake")
    lake.replace("plan", {"plan_id": "p1"}, plan_table(items), {"day": PLAN_DAY})
    lake.replace("requests", {"day": LATER}, requests(*rows))
    settings = Config.model_validate({"layers": {"retrieval": {"top": 3}}})

    def encode(texts: Sequence[str]) -> Any:
        return np.zeros((len(texts), 16), np.float32), np.zeros(len(texts), bool)

    async def go(damage: Any = None) -> Any:
        store = RedisStore("cache", server.url, timeout_s=5)
        try:
            context = Context("p1", settings, KEYS, world.vectors)
            layers = list(LAYERS.values())
            await warm(lake, items, layers, [store], context, resume=False)
            if damage is not None:
                damage()
            subject = Subject(lake, items, PLAN_DAY, layers, [store], context)
            return await verify(subject, from_lake(lake, LATER, PLAN_DAY), encode)
        finally:
            await store.close()

    facts = asyncio.run(go()).facts
    tiers = facts["tiers"]
    assert {tier: (one["requests"], one["hits"]) for tier, one in tiers.items()} == {
        "L1": (2, 1),
        "L2": (2, 1),
        "L3": (3, 2),
    }
    assert tiers["L3"]["share"] == 0.5  # one retrieved just these chunks, the other none of them
    assert facts["hit_ratio"]["retrieval"]["requests"] == 3
    assert facts["hit_ratio"]["retrieval"]["hits"] == 1
    assert facts["audit"] == {"retrieval": {"cache": {"lists_checked": 10, "lists_equal": 10}}}
    assert facts["completion"]["embeddings"]["cache"]["completion"] == 1.0
    assert facts["completion"]["retrieval"]["cache"]["completion"] == 1.0
    assert facts["control_hits"] == 0
    assert "retrieval" not in facts["baselines"]
    stored = lake.read("hits", {"plan_id": "p1", "window": LATER}).to_pylist()
    assert {h["request_id"] for h in stored if h["tier"] == "L3" and h["hit"]} == {"r4", "r5"}

    def damage() -> None:
        word = f"retrieval.l3:{world.vectors.encoder}"
        with redis.Redis.from_url(server.url) as client:
            client.hset(KEYS.key(word, "acme", known.key_digest), "chunk_ids", '["page3#0"]')

    report = asyncio.run(go(damage))
    assert report.facts["audit"]["retrieval"]["cache"]["lists_equal"] == 9
    assert any("not what a fresh search gives" in note for note in report.notes)
