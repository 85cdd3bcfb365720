"""No fault of the cache reaches the application: it is a miss, within the time limit."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.layers.building import DIMENSION, ENCODER, new_keys
from tests.reader.relay import Relay
from warmup_lib.keys import Request
from warmup_lib.reader import Cache, Found, Reader, SyncReader

ASK = Request("acme", "m", "What is new?", "Be brief.")


@pytest.fixture
def nowhere() -> Cache:
    """A cache at an address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return Cache(f"redis://127.0.0.1:{port}/0", new_keys(), ENCODER, DIMENSION)


@pytest.fixture
def relay(redis_url: str) -> Iterator[Relay]:
    with Relay(redis_url) as relay:
        yield relay


def faults(found: Found) -> set[tuple[str, str | None]]:
    assert not found.hit
    return {(look.found, look.error) for look in found.evidence.looked}


def test_nothing_listens(nowhere: Cache, reading: Any) -> None:
    with SyncReader(nowhere) as reader:
        assert faults(reader.lookup(ASK)) == {("error", "ConnectionError")}
        assert not reader.store(ASK, "x")
    found = reading(nowhere, lambda reader: reader.lookup(ASK))
    assert faults(found) == {("error", "ConnectionError")}
    assert [look.layer for look in found.evidence.looked] == [
        "embeddings",
        "responses",
        "embeddings.l1",
    ]

    async def compute() -> str:
        return "made"

    found = reading(nowhere, lambda reader: reader.get_or_compute(ASK, compute))
    assert (found.answer, found.stored, found.hit) == ("made", False, False)


@pytest.mark.stack
def test_a_silent_redis_costs_the_time_limit_once(cache: Cache, relay: Relay, reading: Any) -> None:
    slow = replace(cache, url=relay.url, timeout_s=0.2, encode=lambda _: [1.0] * DIMENSION)

    async def work(reader: Reader) -> tuple[Found, float, Found]:
        await reader.lookup(ASK)
        relay.silent = True
        begun = time.perf_counter()
        found = await reader.lookup(ASK)
        took = time.perf_counter() - begun
        relay.silent = False
        return found, took, await reader.lookup(ASK)

    found, took, after = reading(slow, work)
    assert faults(found) == {("error", "TimeoutError")}
    assert 0.2 <= took < 0.35
    assert "error" not in {look.found for look in after.evidence.looked}
    with SyncReader(slow) as reader:
        reader.lookup(ASK)
        relay.silent = True
        begun = time.perf_counter()
        assert faults(reader.lookup(ASK)) == {("error", "TimeoutError")}
        assert 0.2 <= time.perf_counter() - begun < 0.35
        relay.silent = False


@pytest.mark.stack
def test_connections_that_the_server_closed_are_made_again(
    cache: Cache, relay: Relay, reading: Any
) -> None:
    far = replace(cache, url=relay.url)

    async def work(reader: Reader) -> Found:
        await asyncio.gather(*(reader.lookup(ASK) for _ in range(5)))
        relay.cut()
        return await reader.lookup(ASK)

    assert faults(reading(far, work)) == {("absent", None)}
    with SyncReader(far) as reader:
        reader.lookup(ASK)
        relay.cut()
        assert faults(reader.lookup(ASK)) == {("absent", None)}


@pytest.mark.stack
def test_a_reply_that_comes_too_late_reaches_nobody(cache: Cache, relay: Relay) -> None:
    """A request that was given up must not leave its reply for the next one."""
    far = replace(cache, url=relay.url)

    async def work() -> None:
        async with Reader(far) as reader:
            assert await reader.store(ASK, "news")
            for n in range(30):
                task = asyncio.create_task(reader.lookup(ASK))
                await asyncio.sleep(n / 20_000)
                task.cancel()
                other = await reader.lookup(Request("acme", "m", f"other {n}"))
                assert not other.hit
                assert (await reader.lookup(ASK)).answer == "news"

    asyncio.run(work())


@pytest.mark.stack
def test_more_requests_at_once_than_connections_all_get_their_answer(
    cache: Cache, reading: Any
) -> None:
    asks = [Request("acme", "m", f"question {n}") for n in range(300)]

    async def work(reader: Reader) -> list[Found]:
        for n, ask in enumerate(asks):
            assert await reader.store(ask, f"answer {n}")
        return await asyncio.gather(*(reader.lookup(ask) for ask in asks))

    assert [one.answer for one in reading(cache, work)] == [f"answer {n}" for n in range(300)]


@pytest.mark.stack
def test_without_the_search_module_equal_requests_are_found(plain_url: str, reading: Any) -> None:
    plain = Cache(
        plain_url, new_keys(), ENCODER, DIMENSION, encode=lambda _: [0.5] * DIMENSION, timeout_s=5
    )

    async def work(reader: Reader) -> list[Found]:
        missed = await reader.lookup(ASK, retrieves=True)
        assert await reader.store(ASK, "news", missed.vector)
        return [missed, await reader.lookup(ASK), await reader.lookup(replace_prompt("Else?"))]

    missed, equal, other = reading(plain, work)
    assert (equal.match, equal.answer) == ("exact", "news")
    assert {look.found for look in [*missed.evidence.looked, *other.evidence.looked]} == {"absent"}


def replace_prompt(prompt: str) -> Request:
    return replace(ASK, prompt=prompt)
