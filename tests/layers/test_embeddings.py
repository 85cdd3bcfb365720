"""Vectors are warmed by text and tenant, under one encoder, and are found by nobody else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import redis

from tests.layers.building import (
    DIMENSION,
    ENCODER,
    DictVectors,
    axis,
    context,
    demand,
    items,
    lookup,
    new_keys,
    prompt,
)
from warmup_lib.config import Config
from warmup_lib.layers.base import Context, item_id
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.tables import LEFT_OUT, MICRO, PLAN
from warmup_lib.targets.store import RedisStore

LAYER = Embeddings()
HOURS_48 = 48 * 3600


def test_one_candidate_a_tenant_and_text_with_summed_heat() -> None:
    keys = new_keys()
    rows = [
        prompt(keys, "acme", "Reset my password", 2),
        prompt(keys, "acme", "RESET my  password", 3, model="other"),
        prompt(keys, "acme", "Close my account", 1),
        prompt(keys, "beta", "Reset my password", 5),
        prompt(keys, "acme", "mail [EMAIL]", 9, unwarmable="redacted"),
    ]
    table = LAYER.candidates(demand(rows), Config())
    assert table.schema == PLAN.schema
    text = keys.text_digest("reset my password")
    found = {(i.tenant, i.key_digest): i for i in items(LAYER, demand(rows))}
    assert {k: i.heat_micro // MICRO for k, i in found.items()} == {
        ("acme", text): 5,
        ("acme", keys.text_digest("close my account")): 1,
        ("beta", text): 5,
    }
    item = found["acme", text]
    assert (item.encoder, item.ttl_s, item.text) == (ENCODER, HOURS_48, "RESET my  password")
    assert item.item_id == item_id("embeddings", "acme", text)
    assert (item.model, item.adapter, item.rank, item.expected_micro) == ("", None, 0, 0)


def test_a_text_is_refused_only_where_no_request_may_warm_it() -> None:
    keys = new_keys()
    rows = [
        prompt(keys, "acme", "both", 1, unwarmable="no_store"),
        prompt(keys, "acme", "both", 2, model="other"),
        prompt(keys, "acme", "never", 3, unwarmable="redacted"),
        prompt(keys, "acme", "never", 4, unwarmable="no_store", model="other"),
    ]
    refused = LAYER.refused(demand(rows), Config())
    assert refused.schema == LEFT_OUT.schema
    assert refused.to_pylist() == [
        {
            "layer": "embeddings",
            "tenant": "acme",
            "digest": keys.text_digest("never"),
            "heat_micro": 7 * MICRO,
            "reason": "no_store",
        }
    ]
    assert [(i.text, i.heat_micro // MICRO) for i in items(LAYER, demand(rows))] == [("both", 2)]


def test_no_demand_no_rows() -> None:
    assert LAYER.candidates(demand(), Config()).num_rows == 0
    assert LAYER.refused(demand(), Config()).num_rows == 0


@pytest.mark.stack
def test_warm_prove_find(with_store: Any, redis_url: str) -> None:
    keys = new_keys()
    texts = [f"question {n}" for n in range(5)]
    planned = items(LAYER, demand([prompt(keys, "acme", t) for t in texts]))
    vectors = DictVectors(held={keys.text_digest(t): axis(n) for n, t in enumerate(texts)})
    ctx = context(keys, vectors)

    async def work(store: RedisStore) -> Any:
        before = await LAYER.prove(planned, store, ctx)
        outcomes = await LAYER.warm(planned, store, ctx)
        after = await LAYER.prove(planned, store, ctx)
        asked = [lookup(keys, "acme", "Question  3"), lookup(keys, "acme", "question 9")]
        return before, outcomes, after, await LAYER.find(asked, store, ctx)

    before, outcomes, after, found = with_store(work)
    assert [(p.resident, p.evidence) for p in before] == [(False, "absent")] * 5
    assert [o.item_id for o in outcomes] == [i.item_id for i in planned]
    assert {(o.status, o.bytes, o.ttl_s, o.error) for o in outcomes} == {
        ("warmed", 4 * DIMENSION, HOURS_48, None)
    }
    assert {(p.resident, p.evidence) for p in after} == {(True, f"ttl={HOURS_48}s")}
    hit, miss = found
    third = next(i for i in planned if i.text == "question 3")
    assert (hit.hit, hit.match, hit.item_id) == (True, "exact", third.item_id)
    assert (miss.hit, miss.match, miss.item_id) == (False, None, None)
    with redis.Redis.from_url(redis_url) as client:
        key = keys.key(f"embeddings:{ENCODER}", "acme", third.key_digest)
        stored = np.frombuffer(client.get(key), dtype="<f4")
    assert np.array_equal(stored, vectors.held[third.key_digest])


@pytest.mark.stack
def test_another_tenant_and_another_encoder_find_nothing(with_store: Any) -> None:
    keys = new_keys()
    planned = items(LAYER, demand([prompt(keys, "acme", "hello")]))
    held = {keys.text_digest("hello"): axis(0)}
    ctx = context(keys, DictVectors(held=held))
    other_encoder = context(keys, DictVectors("enc-b", held=held))
    fresh = context(keys, DictVectors(held=held), control="word")

    async def work(store: RedisStore) -> list[bool]:
        await LAYER.warm(planned, store, ctx)
        asked: list[tuple[str, Context]] = [
            ("acme", ctx),
            ("beta", ctx),
            ("acme", other_encoder),
            ("acme", fresh),
        ]
        return [
            (await LAYER.find([lookup(keys, tenant, "hello")], store, c))[0].hit
            for tenant, c in asked
        ]

    assert with_store(work) == [True, False, False, False]


@pytest.mark.stack
def test_an_item_without_a_vector_or_of_another_encoder_fails_alone(with_store: Any) -> None:
    keys = new_keys()
    planned = items(LAYER, demand([prompt(keys, "acme", t) for t in ("known", "unknown")]))
    held = {keys.text_digest("known"): axis(0)}

    async def work(store: RedisStore) -> Any:
        mixed = await LAYER.warm(planned, store, context(keys, DictVectors(held=held)))
        other = await LAYER.warm(planned, store, context(keys, DictVectors("enc-b", held=held)))
        return mixed, other

    mixed, other = with_store(work)
    status = {i.text: (o.status, o.error) for i, o in zip(planned, mixed, strict=True)}
    assert status["known"] == ("warmed", None)
    assert status["unknown"] == ("failed", "no vector of this text: embed the day again")
    assert {(o.status, o.error) for o in other} == {
        ("failed", "planned under another encoder: make a new plan")
    }


@pytest.mark.stack
def test_a_damaged_entry_is_not_resident(with_store: Any, redis_url: str) -> None:
    keys = new_keys()
    planned = items(LAYER, demand([prompt(keys, "acme", t) for t in ("a", "b")]))
    ctx = context(keys, DictVectors(held={keys.text_digest(t): axis(0) for t in "ab"}))
    names = [keys.key(f"embeddings:{ENCODER}", "acme", i.key_digest) for i in planned]

    async def work(store: RedisStore) -> Any:
        await LAYER.warm(planned, store, ctx)
        with redis.Redis.from_url(redis_url) as client:
            client.set(names[0], b"short", ex=60)
            client.persist(names[1])
        try:
            return await LAYER.prove(planned, store, ctx)
        finally:
            with redis.Redis.from_url(redis_url) as client:
                client.delete(*names)

    assert [(p.resident, p.evidence) for p in with_store(work)] == [
        (False, "vector of 5 bytes, 32 expected"),
        (False, "no ttl"),
    ]
