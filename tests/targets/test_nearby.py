"""Indexes over entries with a vector: the nearest are found; what is not kept can be dropped."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pytest
import redis

from warmup_lib.errors import StoreUnavailable
from warmup_lib.search import Point
from warmup_lib.stack.state import StackState
from warmup_lib.targets.nearby import drop_others, ensure_vector_index, nearest
from warmup_lib.targets.store import Entry, RedisStore

pytestmark = pytest.mark.stack


@pytest.fixture
def url(stack_redis: StackState) -> str:
    assert stack_redis.redis is not None
    return stack_redis.redis.url


@pytest.fixture
def prefix(url: str) -> Iterator[str]:
    word = f"test-{uuid.uuid4().hex}"
    yield word
    with redis.Redis.from_url(url) as client:
        for name in client.execute_command("FT._LIST"):
            if name.startswith(word.encode()):
                client.execute_command("FT.DROPINDEX", name)
        for key in client.scan_iter(f"{word}*"):
            client.delete(key)


def run(url: str, work: Callable[[RedisStore], Awaitable[Any]]) -> Any:
    async def inside() -> Any:
        store = RedisStore("cache", url, timeout_s=5)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(inside())


def vector(*values: float) -> bytes:
    return np.asarray(values, dtype="<f4").tobytes()


def test_the_nearest_entries_of_the_index_come_first(url: str, prefix: str) -> None:
    angles = {"a": 0.0, "b": 30.0, "c": 60.0, "d": 180.0}

    async def work(store: RedisStore) -> Any:
        absent = await nearest(store, [Point(f"{prefix}:one", vector(1, 0))], 2, ("name",))
        for name in ("one", "one2"):
            await ensure_vector_index(store, f"{prefix}:{name}", 2)
            await ensure_vector_index(store, f"{prefix}:{name}", 2)  # it is there: nothing changes
            await store.write(
                [
                    Entry(
                        f"{prefix}:{name}:{key}",
                        {
                            "name": f"{name}-{key}",
                            "vector": vector(np.cos(np.radians(at)), np.sin(np.radians(at))),
                        },
                        60,
                    )
                    for key, at in angles.items()
                ]
            )
        points = [Point(f"{prefix}:{name}", vector(1, 0)) for name in ("one", "absent", "one2")]
        return absent, await nearest(store, points, 3, ("name",))

    absent, found = run(url, work)
    assert absent == [[]]
    assert [[one.fields["name"].decode() for one in near] for near in found] == [
        ["one-a", "one-b", "one-c"],
        [],
        ["one2-a", "one2-b", "one2-c"],
    ]
    assert [round(one.similarity, 4) for one in found[0]] == [1.0, 0.866, 0.5]


def test_only_what_is_under_the_prefixes_and_not_kept_goes(url: str, prefix: str) -> None:
    keys = [f"{prefix}:{word}:{n}" for word in ("x", "y", "z", "x2") for n in range(3)]

    async def work(store: RedisStore) -> int:
        await store.write([Entry(key, b"v", 60) for key in keys])
        kept = [f"{prefix}:x:1", f"{prefix}:y:0", f"{prefix}:y:9"]
        return await drop_others(store, [f"{prefix}:x:", f"{prefix}:y:"], kept)

    assert run(url, work) == 4
    with redis.Redis.from_url(url) as client:
        left = {key.decode().removeprefix(f"{prefix}:") for key in client.scan_iter(f"{prefix}*")}
    assert left == {"x:1", "y:0", *(f"{word}:{n}" for word in ("z", "x2") for n in range(3))}


def test_a_refused_command_makes_the_store_unusable(url: str, prefix: str) -> None:
    async def work(store: RedisStore) -> None:
        await store.write([Entry(f"{prefix}:string", b"v", 60)])
        await store.run([["GET", f"{prefix}:string"], ["ZADD", f"{prefix}:string", 1, "a"]])

    with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
        run(url, work)
