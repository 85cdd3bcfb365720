"""Planned bytes are what a real Redis grows by."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from tests.layers.building import (
    ENCODER,
    DictVectors,
    context,
    demand,
    items,
    new_keys,
    prompt,
)
from warmup_lib.config import Config
from warmup_lib.layers.base import Layer, PlanItem
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.layers.responses import Responses
from warmup_lib.layers.retrieval import Retrieval
from warmup_lib.layers.rows import plan_rows
from warmup_lib.layers.sizes import (
    allocated,
    chunk_bytes,
    embedding_bytes,
    list_bytes,
    response_bytes,
    segment_bytes,
    system_prompt_bytes,
)
from warmup_lib.tables import VECTOR
from warmup_lib.targets.store import RedisStore


@pytest.mark.parametrize(
    ("size", "given"), [(1, 16), (128, 128), (129, 160), (1538, 1792), (2050, 2560), (2560, 2560)]
)
def test_size_classes(size: int, given: int) -> None:
    assert allocated(size) == given


def test_sizes() -> None:
    assert embedding_bytes(512) == 2778
    assert response_bytes(pa.array([0, 1000]), 512).to_pylist() == [7132, 8832]


@pytest.mark.stack
@pytest.mark.parametrize("layer", [Embeddings(), Responses()])
def test_a_plans_bytes_are_what_redis_grows_by(
    with_store: Any, redis_url: str, layer: Layer
) -> None:
    draw = random.Random(3)
    words = [f"word{n}" for n in range(500)]
    keys = new_keys()
    answers = [" ".join(draw.choices(words, k=70)) for _ in range(2048)]
    rows = [prompt(keys, "acme", f"question {n}", response=a) for n, a in enumerate(answers)]
    of = demand(rows)
    of = type(of)(of.day, of.prompts, of.heads, of.encoder, 384)
    planned = items(layer, of, Config())
    vectors = np.random.default_rng(3).normal(size=(len(planned), 384)).astype(np.float32)
    held = {i.text_digest or "": v for i, v in zip(planned, vectors, strict=True)}
    ctx = context(keys, DictVectors(dimension=384, held=held))

    async def work(store: RedisStore) -> int:
        before = (await store.facts()).used
        await layer.warm(planned, store, ctx)
        return (await store.facts()).used - before

    grown = with_store(work)
    with redis.Redis.from_url(redis_url) as client:
        client.delete(*client.scan_iter(f"wu1:{keys.secret_id}:*"))
    assert grown == pytest.approx(sum(i.bytes for i in planned), rel=0.1)


@pytest.mark.stack
@pytest.mark.parametrize("tier", ["L1", "L2", None, "L3"])
def test_the_bytes_of_a_tier_are_what_redis_grows_by(
    with_store: Any, redis_url: str, tier: str | None
) -> None:
    layer: Layer = Embeddings() if tier in ("L1", "L2") else Retrieval()
    keys, count, dimension = new_keys(), 2048, 384
    vectors = np.random.default_rng(3).normal(size=(count, dimension)).astype(np.float32)
    digests = [keys.text_digest(f"{n}") for n in range(count)]
    ctx = context(
        keys,
        DictVectors(dimension=dimension, held=dict(zip(digests, vectors, strict=True))),
        Config.model_validate({"layers": {"embeddings": {"segments": count}}}),
    )
    planned = [
        _item(layer, tier, digest, vector) for digest, vector in zip(digests, vectors, strict=True)
    ]
    estimate = {
        "L1": system_prompt_bytes(),
        "L2": segment_bytes(dimension),
        None: chunk_bytes(dimension),
        "L3": list_bytes(dimension, 5),
    }

    async def work(store: RedisStore) -> int:
        before = (await store.facts()).used
        await layer.arrange(planned, store, ctx)
        outcomes = await layer.warm(planned, store, ctx)
        assert {o.status for o in outcomes} == {"warmed"}
        return (await store.facts()).used - before

    grown = with_store(work) / count
    with redis.Redis.from_url(redis_url) as client:
        client.delete(*client.scan_iter(f"wu1:{keys.secret_id}:*"))
    assert grown == pytest.approx(estimate[tier], rel=0.15)


def _item(layer: Layer, tier: str | None, digest: str, vector: Any) -> PlanItem:
    """Return an item of a tier, with texts and ids of common lengths."""
    rows = plan_rows(
        layer.name,
        pa.table({"tenant": ["acme"], "heat_micro": [1]}),
        {
            "tier": tier,
            "key_digest": digest,
            "text_digest": digest,
            "model": "a-model-of-common-name" if tier == "L1" else "",
            "system_prompt": "You are the help desk of Acme. " * 20 if tier == "L1" else None,
            "encoder": ENCODER,
            "chunk_ids": pa.array([[f"a.page.of.docs#{n}" for n in range(5 if tier else 1)]]),
            "document": "a.page.of.docs",
            "source_digest": digest * 2 if tier == "L1" else digest,
            "vector": pa.array([vector.tolist()], VECTOR),
            "ttl_s": 3600,
        },
    )
    return PlanItem.rows(rows)[0]
