"""Apply publishes each tenant's threshold to each Redis, and readers and look-ups keep to it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.apply.memory import MemoryTarget, memory_context, plan_item
from warmup_lib import stack
from warmup_lib.apply.thresholds import publish
from warmup_lib.layers.base import Context
from warmup_lib.targets.store import RedisStore
from warmup_lib.threshold.force import Threshold, Thresholds

ITEMS = [
    plan_item("responses", 1),
    replace(plan_item("responses", 2), tenant="zeta"),
    replace(plan_item("embeddings", 3), tenant="no answers"),
]
CALIBRATED = Thresholds(0.92, {"acme": Threshold(0.885, 0.01, "2026-03-14")})


def context() -> Context:
    return replace(memory_context(), thresholds=CALIBRATED)


@pytest.mark.stack
def test_thresholds_are_published_with_a_lifetime(stack_redis: stack.StackState) -> None:
    ctx = context()
    assert stack_redis.redis is not None
    url = stack_redis.redis.url

    async def work() -> tuple[dict[str, Any], list[Any], list[Any]]:
        store = RedisStore("cache", url, timeout_s=5)
        try:
            told = await publish(ITEMS, [MemoryTarget("memory"), store], ctx)
            keys = [ctx.places.threshold(tenant) for tenant in ("acme", "zeta", "no answers")]
            held = await store.read(keys, ("threshold", "bound", "calibrated_at"))
            return told, held, await store.look(keys, "threshold")
        finally:
            await store.close()

    told, held, seen = asyncio.run(work())
    assert told == {
        "acme": {"threshold": 0.885, "bound": 0.01, "calibrated_at": "2026-03-14"},
        "zeta": {"threshold": 0.92, "bound": None, "calibrated_at": None},
    }
    assert held == [
        {"threshold": b"0.885", "bound": b"0.01", "calibrated_at": b"2026-03-14"},
        {"threshold": b"0.92", "bound": b"", "calibrated_at": b""},
        None,
    ]
    ttl = int(ctx.config.layers.responses.ttl.total_seconds())
    assert [0 < one.ttl_s <= ttl for one in seen[:2]] == [True, True]


def test_a_redis_that_does_not_answer_is_left_out() -> None:
    dead = RedisStore("gone", "redis://127.0.0.1:1/0", timeout_s=1)
    told = asyncio.run(publish(ITEMS, [dead], memory_context()))
    assert {one["threshold"] for one in told.values()} == {0.92}


def test_look_ups_use_the_tenants_own() -> None:
    assert context().threshold("acme") == 0.885
    assert context().threshold("zeta") == 0.92
    assert memory_context().threshold("acme") == 0.92
