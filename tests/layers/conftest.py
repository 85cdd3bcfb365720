"""Opens real targets for the layers' tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.layers.building import new_keys
from tests.layers.pages import World
from tests.targets.tiny_host import TinyHost, serving
from warmup_lib.stack.state import StackState
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.store import RedisStore


@pytest.fixture
def world() -> World:
    return World(new_keys())


@pytest.fixture
def redis_url(stack_redis: StackState) -> str:
    assert stack_redis.redis is not None
    return stack_redis.redis.url


@pytest.fixture
def with_store(redis_url: str) -> Callable[[Callable[[RedisStore], Awaitable[Any]]], Any]:
    """Run async work with an open Redis, and close it."""

    def run(work: Callable[[RedisStore], Awaitable[Any]]) -> Any:
        async def inside() -> Any:
            store = RedisStore("cache", redis_url, timeout_s=5)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(inside())

    return run


@pytest.fixture
def tiny() -> Iterator[TinyHost]:
    with serving(TinyHost()) as host:
        yield host


@pytest.fixture
def with_host() -> Callable[..., Any]:
    """Run async work with an open model host, and close it."""

    def run(url: str, work: Callable[[ModelHost], Awaitable[Any]], **settings: Any) -> Any:
        async def inside() -> Any:
            host = ModelHost("gpu", url, **settings)
            try:
                return await work(host)
            finally:
                await host.close()

        return asyncio.run(inside())

    return run


@pytest.fixture
def with_plain(plain_url: str) -> Callable[[Callable[[RedisStore], Awaitable[Any]]], Any]:
    """Run async work with an open Redis without the search module, and close it."""

    def run(work: Callable[[RedisStore], Awaitable[Any]]) -> Any:
        async def inside() -> Any:
            store = RedisStore("plain", plain_url, timeout_s=5)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(inside())

    return run
