"""Planned bytes are what a real Redis grows by."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from tests.layers.building import DictVectors, context, demand, items, new_keys, prompt
from warmup_lib.config import Config
from warmup_lib.layers.base import Layer
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.layers.responses import Responses
from warmup_lib.layers.sizes import allocated, embedding_bytes, response_bytes
from warmup_lib.targets.store import RedisStore


@pytest.mark.parametrize(
    ("size", "given"), [(1, 16), (128, 128), (129, 160), (1538, 1792), (2050, 2560), (2560, 2560)]
)
def test_size_classes(size: int, given: int) -> None:
    assert allocated(size) == given


def test_sizes() -> None:
    assert embedding_bytes(512) == 2778
    assert response_bytes(pa.array([0, 1000]), 512).to_pylist() == [6532, 8932]


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
    assert grown == pytest.approx(sum(i.bytes for i in planned), rel=0.15)
