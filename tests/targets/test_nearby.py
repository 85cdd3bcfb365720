"""Searches stay inside an index and its tags; what begins with a prefix can be taken away."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np
import pytest
import redis

from warmup_lib.stack.state import StackState
from warmup_lib.targets.nearby import (
    Point,
    drop_others,
    ensure_answer_index,
    ensure_vector_index,
    nearest,
)
from warmup_lib.targets.store import Entry, RedisStore

pytestmark = pytest.mark.stack
T = TypeVar("T")
Use = Callable[[Callable[[RedisStore], Awaitable[T]]], T]


@pytest.fixture
def url(stack_redis: StackState) -> str:
    assert stack_redis.redis is not None
    return stack_redis.redis.url


@pytest.fixture
def client(url: str) -> Any:
    with redis.Redis.from_url(url, protocol=2) as client:
        yield client


@pytest.fixture
def prefix(client: Any) -> Any:
    word = f"test-{uuid.uuid4().hex}"
    yield word
    for key in client.scan_iter(f"{word}*"):
        client.delete(key)


@pytest.fixture
def use(url: str) -> Use[Any]:
    return lambda work: run(url, work)


def run(url: str, work: Callable[[RedisStore], Awaitable[T]], batch: int = 64) -> T:
    async def inside() -> T:
        store = RedisStore("cache", url, timeout_s=5, batch=batch)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(inside())


def vector(*values: float) -> bytes:
    return np.asarray(values, dtype="<f4").tobytes()


def ask(index: str, context: str, *values: float) -> Point:
    return Point(index, vector(*values), {"context": context, "signature": "s"})


def test_search_stays_inside_index_context_and_signature(
    use: Use[Any], client: Any, prefix: str
) -> None:
    def entry(index: str, ident: str, context: str, *values: float, sign: str = "s") -> Entry:
        fields: dict[str, bytes | str | float] = {"response": ident, "prompt": ident}
        fields |= {"prompt_vector": vector(*values), "context": context, "signature": sign}
        return Entry(f"{index}:{ident}", fields, 60)

    one, other, longer = f"{prefix}:a", f"{prefix}:b", f"{prefix}:a2"

    async def work(store: RedisStore) -> list[Any]:
        for index in (one, other, one):
            await ensure_answer_index(store, index, 2)
        await store.write(
            [
                entry(one, "near", "c1", 1, 0),
                entry(one, "far", "c1", 0, 1),
                entry(one, "elsewhere", "c2", 1, 0),
                entry(one, "opposite", "c1", 1, 0, sign="t"),
                entry(other, "foreign", "c1", 1, 0),
                entry(longer, "longer", "c1", 1, 0),
            ]
        )
        asks = [ask(one, "c1", 1, 0), ask(one, "c3", 1, 0), ask(f"{prefix}:none", "c1", 1, 0)]
        asks += [ask(other, "c1", 0, 1)]
        return await nearest(store, asks, 3, ("response",))

    first, unknown, absent, foreign = use(work)
    client.ft(one).dropindex()
    client.ft(other).dropindex()
    assert [(n.fields["response"], n.similarity) for n in first] == [
        (b"near", pytest.approx(1, abs=1e-6)),
        (b"far", pytest.approx(0, abs=1e-6)),
    ]
    assert unknown == []
    assert absent == []
    assert [n.fields["response"] for n in foreign] == [b"foreign"]


def test_an_index_from_before_signatures_gets_the_field(
    use: Use[Any], client: Any, prefix: str
) -> None:
    schema = "prompt_vector VECTOR FLAT 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC COSINE context TAG"
    create = ["FT.CREATE", prefix, "ON", "HASH", "PREFIX", "1", prefix, "SCHEMA", *schema.split()]
    client.execute_command(*create)
    fields = {"prompt_vector": vector(1, 0), "context": "c", "signature": "s", "response": "r"}

    async def work(store: RedisStore) -> Any:
        for _ in range(2):
            await ensure_answer_index(store, prefix, 2)
        await store.write([Entry(f"{prefix}:1", fields, 60)])
        return await nearest(store, [ask(prefix, "c", 1, 0)], 1, ("response",))

    [[found]] = use(work)
    use(lambda store: ensure_answer_index(store, prefix, 2))  # another connection finds it there
    client.ft(prefix).dropindex()
    assert found.fields == {"response": b"r"}


def test_vectors_without_tags_are_searched_in_the_whole_index(
    use: Use[Any], client: Any, prefix: str
) -> None:
    async def work(store: RedisStore) -> Any:
        for _ in range(2):
            await ensure_vector_index(store, prefix, 2)
        entries = [("a", 1, 0), ("b", 0, 1)]
        await store.write(
            [Entry(f"{prefix}:{i}", {"vector": vector(x, y), "n": i}, 60) for i, x, y in entries]
        )
        return await nearest(store, [Point(prefix, vector(0, 1))], 1, ("n",))

    [[found]] = use(work)
    client.ft(prefix).dropindex()
    assert (found.key, found.fields) == (f"{prefix}:b", {"n": b"b"})


def test_what_is_not_kept_is_taken_away_under_the_prefixes_only(
    use: Use[Any], client: Any, prefix: str
) -> None:
    keys = [f"{prefix}:a:1", f"{prefix}:a:2", f"{prefix}:b:1", f"{prefix}:c:1"]
    for key in keys:
        client.set(key, "x", ex=60)
    gone = use(lambda s: drop_others(s, [f"{prefix}:a:", f"{prefix}:b:"], [keys[0]]))
    assert gone == 2
    assert [client.exists(key) for key in keys] == [1, 0, 0, 1]
