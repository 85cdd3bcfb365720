"""A bounded set on a Redis: what is written stays, and of the rest the most used do."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warmup_lib.stack.state import StackState
from warmup_lib.targets.store import Entry, RedisStore
from warmup_lib.targets.used import keep_most_used

pytestmark = pytest.mark.stack

Plan = dict[str, int]
plans = st.lists(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 9), min_size=1, max_size=3),
    min_size=1,
    max_size=6,
)


@pytest.fixture
def url(stack_redis: StackState) -> str:
    assert stack_redis.redis is not None
    return stack_redis.redis.url


@pytest.fixture
def prefix(url: str) -> Iterator[str]:
    word = f"test-{uuid.uuid4().hex}"
    yield word
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(f"{word}*"):
            client.delete(key)


def expected(plans: list[Plan], bound: int) -> list[set[str]]:
    """Return what must be there after each plan, by the plain rule."""
    scores: Plan = {}
    held = []
    for plan in plans:
        others = sorted(scores.keys() - plan.keys(), key=lambda k: (-scores[k], k))
        kept = others[: max(0, bound - len(plan))]
        scores = {key: scores[key] for key in kept} | plan
        held.append(set(scores))
    return held


@given(plans=plans, bound=st.integers(3, 6))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_bound_holds_and_the_least_used_go(
    url: str, prefix: str, plans: list[Plan], bound: int
) -> None:
    prefix = f"{prefix}-{uuid.uuid4().hex}"

    async def work() -> list[set[str]]:
        store = RedisStore("cache", url, timeout_s=5)
        seen = []
        try:
            for plan in plans:
                uses = {f"{prefix}:{key}": count for key, count in plan.items()}
                await keep_most_used(store, f"{prefix}-uses", uses, bound)
                await store.write([Entry(key, b"v", 60) for key in uses])
                with redis.Redis.from_url(url) as client:
                    found = {k.decode()[-1] for k in client.scan_iter(f"{prefix}:*", count=1000)}
                    noted = {k.decode()[-1] for k in client.zrange(f"{prefix}-uses", 0, -1)}
                assert found == noted
                assert len(found) <= bound
                seen.append(found)
        finally:
            await store.close()
        return seen

    assert asyncio.run(work()) == expected(plans, bound)


def test_the_dropped_are_named_and_nothing_to_note_writes_nothing(url: str, prefix: str) -> None:
    async def work() -> Any:
        store = RedisStore("cache", url, timeout_s=5)
        try:
            first = await keep_most_used(store, f"{prefix}-uses", {}, 2)
            uses = {f"{prefix}:a": 5, f"{prefix}:b": 7}
            await keep_most_used(store, f"{prefix}-uses", uses, 2)
            await store.write([Entry(key, b"v", 60) for key in uses])
            return first, await keep_most_used(store, f"{prefix}-uses", {f"{prefix}:c": 1}, 2)
        finally:
            await store.close()

    first, second = asyncio.run(work())
    assert first == []
    assert second == [f"{prefix}:a"]
