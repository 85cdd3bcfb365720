"""A Redis, and caches on it under a secret of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.layers.building import DIMENSION, ENCODER, new_keys
from warmup_lib.reader import Cache, Reader
from warmup_lib.stack.state import StackState


@pytest.fixture
def redis_url(stack_redis: StackState) -> str:
    assert stack_redis.redis is not None
    return stack_redis.redis.url


@pytest.fixture
def cache(redis_url: str) -> Cache:
    """A cache that nothing lies in; its time limit is long, for the machine may be busy."""
    return Cache(redis_url, new_keys(), ENCODER, DIMENSION, timeout_s=5)


@pytest.fixture
def reading() -> Callable[[Cache, Callable[[Reader], Awaitable[Any]]], Any]:
    """Run async work with an open reader, and close it."""

    def run(cache: Cache, work: Callable[[Reader], Awaitable[Any]]) -> Any:
        async def inside() -> Any:
            async with Reader(cache) as reader:
                return await work(reader)

        return asyncio.run(inside())

    return run
