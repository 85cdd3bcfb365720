"""A segment is known by what it asks for, and a Redis keeps the most used segments only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers.building import (
    DIMENSION,
    ENCODER,
    DictVectors,
    at_cosine,
    axis,
    context,
    demand,
    items,
    lookup,
    new_keys,
)
from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.layers.base import PlanItem
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.plan.segments import SCHEMA
from warmup_lib.tables import MICRO
from warmup_lib.targets.store import RedisStore

LAYER = Embeddings()
Row = tuple[str, str, str, float]
VECTORS = DictVectors(held={"t-x": axis(0), "t-y": axis(1), "t-z": at_cosine(0.6)})


def segments(keys: Keys, *rows: Row, vectors: DictVectors = VECTORS) -> Demand:
    """Return the demand of (tenant, segment, text digest, heat)."""
    table = pa.Table.from_pylist(
        [
            {"tenant": tenant, "user_segment": segment, "text_digest": text}
            | {"segment_digest": keys.segment_digest(segment), "heat_micro": int(heat * MICRO)}
            for tenant, segment, text, heat in rows
        ],
        SCHEMA,
    )
    return replace(demand(), segments=table, vectors=vectors)


def test_a_segments_vector_is_the_mean_of_what_it_asks_for_by_heat() -> None:
    keys = new_keys()
    of = segments(
        keys,
        ("acme", "vip", "t-x", 3),
        ("acme", "vip", "t-y", 4),
        ("acme", "vip", "t-unread", 99),
        ("acme", "trial", "t-y", 2),
        ("beta", "vip", "t-x", 1),
        ("beta", "odd", "t-unread", 7),
    )
    found = {(i.tenant, i.key_digest): i for i in items(LAYER, of)}
    assert {k: i.heat_micro / MICRO for k, i in found.items()} == {
        ("acme", keys.segment_digest("vip")): 106,
        ("acme", keys.segment_digest("trial")): 2,
        ("beta", keys.segment_digest("vip")): 1,
    }
    vip = found["acme", keys.segment_digest("vip")]
    assert (vip.tier, vip.encoder, vip.ttl_s) == ("L2", ENCODER, 48 * 3600)
    np.testing.assert_allclose(vip.vector, 0.6 * axis(0) + 0.8 * axis(1), atol=1e-6)
    assert vip.source_digest != found["beta", keys.segment_digest("vip")].source_digest


@given(
    st.lists(
        st.tuples(st.sampled_from(["vip", "trial"]), st.integers(0, 30), st.floats(0.001, 1000)),
        min_size=1,
        max_size=40,
        unique_by=lambda row: row[:2],
    )
)
@settings(max_examples=40, deadline=None)
def test_vectors_have_length_one_and_do_not_depend_on_the_order_of_rows(
    rows: list[tuple[str, int, float]],
) -> None:
    draw = np.random.default_rng(1)
    texts = np.abs(draw.normal(size=(31, DIMENSION))).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    vectors = DictVectors(held={f"t-{n}": v for n, v in enumerate(texts)})
    keys = Keys(b"0123456789abcdef")
    made: list[Row] = [("acme", segment, f"t-{n}", heat) for segment, n, heat in rows]
    one, two = (
        {i.item_id: i for i in items(LAYER, segments(keys, *order, vectors=vectors))}
        for order in (made, made[::-1])
    )
    assert one == two
    for item in one.values():
        assert np.linalg.norm(item.vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.stack
def test_warm_prove_find(with_store: Any, redis_url: str) -> None:
    keys = new_keys()
    planned = items(LAYER, segments(keys, ("acme", "premium_vip", "t-x", 1)))
    ctx = context(keys, VECTORS)
    asked = [
        lookup(keys, "acme", "hi", "vip", user_segment="premium_vip"),
        lookup(keys, "acme", "hi", "trial", user_segment="trial"),
        lookup(keys, "acme", "hi", "none"),
        lookup(keys, "beta", "hi", "tenant", user_segment="premium_vip"),
    ]

    async def work(store: RedisStore) -> Any:
        outcomes = await LAYER.warm(planned, store, ctx)
        proofs = await LAYER.prove(planned, store, ctx)
        other = replace(ctx, vectors=DictVectors("enc-b"))
        refused = await LAYER.warm(planned, store, other)
        unread = await LAYER.find_tier("L2", asked[:1], store, other)
        return outcomes, proofs, await LAYER.find_tier("L2", asked, store, ctx), refused, unread

    outcomes, proofs, found, refused, unread = with_store(work)
    assert [(o.status, o.ttl_s) for o in outcomes] == [("warmed", 48 * 3600)]
    assert [p.resident for p in proofs] == [True]
    assert {m.request_id: (m.asked, m.hit) for m in found} == {
        "vip": (True, True),
        "trial": (True, False),
        "none": (False, False),
        "tenant": (True, False),
    }
    assert found[0].item_id == planned[0].item_id
    assert refused[0].error == "planned under another encoder: make a new plan"
    assert not unread[0].hit
    with redis.Redis.from_url(redis_url) as client:
        key = keys.key(f"embeddings.l2:{ENCODER}", "acme", keys.segment_digest("premium_vip"))
        stored = np.frombuffer(client.hget(key, "vector"), dtype="<f4")
    assert np.array_equal(stored, axis(0))


@pytest.mark.stack
def test_the_set_keeps_its_bound_by_dropping_the_least_used(
    with_store: Any, redis_url: str
) -> None:
    keys = new_keys()
    config = Config.model_validate({"layers": {"embeddings": {"segments": 4}}})
    ctx = context(keys, VECTORS, config)

    def plan(**heat: float) -> list[PlanItem]:
        return items(LAYER, segments(keys, *(("acme", s, "t-x", h) for s, h in heat.items())))

    async def apply(store: RedisStore, planned: Sequence[PlanItem]) -> Any:
        arranged = await LAYER.arrange(planned, store, ctx)
        await LAYER.warm(arranged.items, store, ctx)
        return arranged

    async def work(store: RedisStore) -> list[set[str]]:
        seen = []
        for heat in (
            {"a": 9, "b": 1, "c": 5},
            {"d": 3},  # the set is full
            {"e": 2},  # b goes, the least used
            {"f": 0.5, "g": 0.4},  # new ones go before what is kept: of a, c, d, e two go
            {"f": 0.5, "g": 0.4},  # again: nothing more goes
        ):
            await apply(store, plan(**heat))
            seen.append(names())
        return seen

    def names() -> set[str]:
        with redis.Redis.from_url(redis_url) as client:
            held = set(client.scan_iter(f"wu1:{keys.secret_id}:*:embeddings.l2:*"))
        every = {s: f"{keys.segment_digest(s)}".encode() for s in "abcdefg"}
        return {s for s, digest in every.items() if any(k.endswith(digest) for k in held)}

    assert with_store(work) == [
        {"a", "b", "c"},
        {"a", "b", "c", "d"},
        {"a", "c", "d", "e"},
        {"a", "c", "f", "g"},
        {"a", "c", "f", "g"},
    ]


@pytest.mark.stack
def test_entries_that_ran_out_make_room_and_a_plan_beyond_the_bound_is_cut(
    with_store: Any, redis_url: str
) -> None:
    keys = new_keys()
    config = Config.model_validate({"layers": {"embeddings": {"segments": 2}}})
    ctx = context(keys, VECTORS, config)
    first = items(LAYER, segments(keys, ("acme", "a", "t-x", 9), ("acme", "b", "t-x", 8)))
    second = items(
        LAYER, segments(keys, *(("beta", s, "t-y", h) for s, h in (("c", 1), ("d", 3), ("e", 2))))
    )
    ledger = keys.ledger("embeddings.l2.uses")

    async def work(store: RedisStore) -> Any:
        await LAYER.warm((await LAYER.arrange(first, store, ctx)).items, store, ctx)
        with redis.Redis.from_url(redis_url) as client:
            gone = keys.key(f"embeddings.l2:{ENCODER}", "acme", first[0].key_digest)
            assert client.delete(gone) == 1
        arranged = await LAYER.arrange(second, store, ctx)
        with redis.Redis.from_url(redis_url) as client:
            return arranged, client.zrange(ledger, 0, -1, withscores=True), client.ttl(ledger)

    arranged, noted, ttl = with_store(work)
    kept = [i.key_digest for i in arranged.items]
    assert kept == [keys.segment_digest("d"), keys.segment_digest("e")]
    [beyond] = arranged.skipped
    assert (beyond.status, beyond.error) == ("skipped", "more segments than this Redis keeps (2)")
    assert [score for _, score in noted] == [2 * MICRO, 3 * MICRO]
    assert 0 < ttl <= 30 * 86400
