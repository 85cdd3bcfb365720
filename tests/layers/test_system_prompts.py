"""System prompts are known again by their head: a digest and a length, never a text."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
import redis

from tests.layers.building import DictVectors, context, demand, head, items, lookup, new_keys
from warmup_lib.config import Config
from warmup_lib.layers.base import PlanItem
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.tables import MICRO
from warmup_lib.targets.store import RedisStore

LAYER = Embeddings()
HOURS_72 = 72 * 3600
SYSTEM = "You are the help desk of Acme."


def tier(of: list[PlanItem], name: str = "L1") -> list[PlanItem]:
    return [item for item in of if item.tier == name]


def test_one_candidate_a_head_with_a_system_prompt() -> None:
    keys = new_keys()
    heads = [
        head(keys, "acme", SYSTEM, 5),
        head(keys, "acme", SYSTEM, 3, tools="[1]", parsed_tools=[1]),
        head(keys, "beta", SYSTEM, 2),
        head(keys, "acme", "", 9, tools="[1]", parsed_tools=[1]),
        head(keys, "acme", "It is 10:15:31.", 7, unwarmable="volatile"),
    ]
    found = tier(items(LAYER, demand(heads=heads)))
    assert [(i.tenant, i.heat_micro // MICRO, i.ttl_s) for i in found] == [
        ("acme", 5, HOURS_72),
        ("acme", 3, HOURS_72),
        ("beta", 2, HOURS_72),
    ]
    assert [i.key_digest for i in found] == [h["head_digest"] for h in heads[:3]]
    plain = hashlib.sha256(f"{SYSTEM}\0".encode()).hexdigest()
    with_tools = hashlib.sha256(f"{SYSTEM}\0[1]".encode()).hexdigest()
    assert [i.source_digest for i in found] == [plain, with_tools, plain]
    [refused] = LAYER.refused(demand(heads=heads), Config()).to_pylist()
    assert (refused["digest"], refused["reason"]) == (heads[4]["head_digest"], "volatile")


def test_limits_and_lifetimes_are_settings() -> None:
    settings = {"items": 7, "system_prompts": 5, "segments": 3, "system_prompt_ttl": "5h"}
    config = Config.model_validate({"layers": {"embeddings": settings}})
    assert LAYER.limits(config) == {None: 7, "L1": 5, "L2": 3}
    [item] = items(LAYER, demand(heads=[head(new_keys(), "acme", SYSTEM)]), config)
    assert item.ttl_s == 5 * 3600


@pytest.mark.stack
def test_warm_prove_find(with_store: Any, redis_url: str) -> None:
    keys = new_keys()
    heads = [head(keys, "acme", SYSTEM), head(keys, "acme", SYSTEM, adapter="tuned")]
    planned = tier(items(LAYER, demand(heads=heads)))
    ctx = context(keys, DictVectors(), adapters={"tuned": "tuned-0123456789ab"})
    asked = [
        lookup(keys, "acme", "hi", "same", system_prompt=SYSTEM),
        lookup(keys, "acme", "hi", "tuned", system_prompt=SYSTEM, adapter="tuned"),
        lookup(keys, "acme", "hi", "other", system_prompt=f"{SYSTEM} Be short."),
        lookup(keys, "acme", "hi", "none"),
        lookup(keys, "beta", "hi", "tenant", system_prompt=SYSTEM),
    ]

    async def work(store: RedisStore) -> Any:
        before = await LAYER.prove(planned, store, ctx)
        outcomes = await LAYER.warm(planned, store, ctx)
        after = await LAYER.prove(planned, store, ctx)
        found = await LAYER.find_tier("L1", asked, store, ctx)
        # The adapter's weights have changed since: what was known under the old ones is not found.
        newer = replace(ctx, adapters={"tuned": "tuned-ba9876543210"})
        return before, outcomes, after, found, await LAYER.find_tier("L1", asked[1:2], store, newer)

    before, outcomes, after, found, newer = with_store(work)
    assert [p.evidence for p in before] == ["absent"] * 2
    assert [(o.status, o.ttl_s, o.error) for o in outcomes] == [("warmed", HOURS_72, None)] * 2
    assert [(p.resident, p.evidence) for p in after] == [(True, f"ttl={HOURS_72}s")] * 2
    assert {m.request_id: (m.asked, m.hit) for m in found} == {
        "same": (True, True),
        "tuned": (True, True),
        "other": (True, False),
        "none": (False, False),
        "tenant": (True, False),
    }
    assert [m.item_id for m in found[:2]] == [i.item_id for i in planned]
    assert not newer[0].hit
    place = {"model": "m", "adapter": None}
    with redis.Redis.from_url(redis_url) as client:
        key = keys.key("embeddings.l1", "acme", planned[0].key_digest, **place)
        stored = client.hgetall(key)
    assert stored == {
        b"item_id": planned[0].item_id.encode(),
        b"sha256": hashlib.sha256(f"{SYSTEM}\0".encode()).hexdigest().encode(),
        b"characters": str(len(SYSTEM)).encode(),
        b"model": b"m",
    }


@pytest.mark.stack
def test_an_entry_of_another_content_or_without_a_lifetime_is_not_resident(
    with_store: Any, redis_url: str
) -> None:
    keys = new_keys()
    planned = tier(items(LAYER, demand(heads=[head(keys, "acme", t) for t in ("a", "b", "c")])))
    ctx = context(keys, DictVectors())
    names = [keys.key("embeddings.l1", "acme", i.key_digest, model="m") for i in planned]

    async def work(store: RedisStore) -> Any:
        await LAYER.warm(planned, store, ctx)
        with redis.Redis.from_url(redis_url) as client:
            client.hset(names[0], "sha256", "0" * 64)
            client.persist(names[1])
            client.set(names[2], "taken")
        try:
            return await LAYER.prove(planned, store, ctx)
        finally:
            with redis.Redis.from_url(redis_url) as client:
                client.delete(*names)

    assert [(p.resident, p.evidence) for p in with_store(work)] == [
        (False, "made from other content"),
        (False, "no ttl"),
        (False, "absent"),
    ]
