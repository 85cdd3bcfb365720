"""No fault of the cache reaches the application: it is a miss, within the time limit."""

from __future__ import annotations

import asyncio
import gc
import math
import random
import socket
import struct
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import redis

from tests.layers.building import DIMENSION, ENCODER, new_keys
from tests.reader.relay import Relay
from warmup_lib.errors import InputDataError
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


HALF = "half of a pair \ud83d"
"""Text that JSON can spell and no UTF-8 holds."""


@pytest.mark.stack
@pytest.mark.parametrize(("prompt", "answer"), [(HALF, "fine"), ("fine", HALF), (HALF, HALF)])
def test_an_answer_that_cannot_be_stored_is_given_back_all_the_same(
    cache: Cache, reading: Any, prompt: str, answer: str
) -> None:
    known = replace(cache, encode=lambda _: [1.0] * DIMENSION)
    ask = Request("acme", "m", prompt)

    async def compute() -> str:
        return answer

    found = reading(known, lambda reader: reader.get_or_compute(ask, compute))
    assert (found.answer, found.stored) == (answer, False)
    with SyncReader(known) as reader:
        assert reader.get_or_compute(ask, lambda: answer).answer == answer
        assert not reader.store(ask, answer)


@pytest.mark.stack
@pytest.mark.parametrize("option", ["decode_responses=true", "protocol=3", "socket_timeout=9"])
def test_a_url_does_not_change_how_replies_are_read(
    cache: Cache, reading: Any, option: str
) -> None:
    told = replace(
        cache, url=f"{cache.url}?{option}", encode=lambda _: [1.0] + [0.0] * (DIMENSION - 1)
    )

    async def work(reader: Reader) -> list[Found]:
        assert await reader.store(ASK, "news", replace_vector())
        return [await reader.lookup(ASK), await reader.lookup(replace_prompt("And what is new?"))]

    equal, similar = reading(told, work)
    assert (equal.match, equal.answer, similar.match) == ("exact", "news", "semantic")
    with SyncReader(told) as reader:
        assert reader.lookup(ASK) == equal


def replace_vector() -> bytes:
    return struct.pack(f"<{DIMENSION}f", 1.0, *[0.0] * (DIMENSION - 1))


@pytest.mark.stack
def test_one_reader_serves_one_event_loop_after_the_other(cache: Cache) -> None:
    """As `asyncio.run` makes them: a loop that ended takes its connections with it."""
    reader = Reader(cache)

    async def compute() -> str:
        return "made"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # none of the loops closed the reader
        for n in range(3):
            found = asyncio.run(reader.get_or_compute(replace_prompt(f"loop {n}"), compute))
            assert (found.answer, found.stored) == ("made", True)
            assert asyncio.run(reader.lookup(replace_prompt(f"loop {n}"))).hit
        del reader
        gc.collect()


@pytest.mark.stack
def test_one_reader_serves_event_loops_at_one_time(cache: Cache) -> None:
    reader = Reader(cache)

    async def compute() -> str:
        await asyncio.sleep(0.02)
        return "made"

    async def work(n: int) -> list[Found]:
        async with reader:
            asks = [replace_prompt(f"thread {n % 2}"), replace_prompt(f"thread {n}")]
            return await asyncio.gather(
                *(reader.get_or_compute(ask, compute) for ask in asks for _ in range(20))
            )

    with ThreadPoolExecutor(4) as threads:
        for done in threads.map(lambda n: asyncio.run(work(n)), range(8)):
            assert {one.answer for one in done} == {"made"}
            assert {look.found for one in done for look in one.evidence.looked} <= {"hit", "absent"}


@pytest.mark.stack
@pytest.mark.parametrize("when", ["before", "after the look", "while it computes"])
def test_computing_beside_a_silent_redis_costs_one_time_limit(
    cache: Cache, relay: Relay, when: str
) -> None:
    slow = replace(cache, url=relay.url, timeout_s=0.2)
    known = Request("acme", "m", "Who are you?")

    class Late(SyncReader):
        def _look(self, asked: Any) -> Found:
            found = super()._look(asked)
            relay.silent |= when == "after the look" and asked.request is not known
            return found

    def compute() -> str:
        relay.silent |= when == "while it computes"
        return "made"

    with Late(slow) as reader:
        reader.lookup(known)
        relay.silent |= when == "before"
        begun = time.perf_counter()
        found = reader.get_or_compute(ASK, compute)
        assert 0.2 <= time.perf_counter() - begun < 0.35
        relay.silent = False
    assert (found.answer, found.stored, found.reached) == ("made", False, when != "before")


@pytest.mark.stack
def test_threads_that_share_a_reader_take_no_connection_from_each_other(cache: Cache) -> None:
    """Threads that take turns at any moment: each connects while others give theirs back."""
    begin = threading.Barrier(12)

    def ask(reader: SyncReader, n: int) -> list[Found]:
        begin.wait()
        return [reader.lookup(Request("acme", "m", f"{n} {k}")) for k in range(3)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(10):
            with SyncReader(cache) as reader, ThreadPoolExecutor(12) as threads:
                asked = [threads.submit(ask, reader, n) for n in range(12)]
                for found in [found for one in asked for found in one.result()]:
                    assert faults(found) == {("absent", None)}
    finally:
        sys.setswitchinterval(before)


@pytest.mark.stack
@pytest.mark.parametrize(
    "made",
    [[1.0], [math.inf] * DIMENSION, [math.nan] * DIMENSION, [1e39] * DIMENSION, "a text", 7,
     np.ones((1, DIMENSION), np.float32), [[1.0]] * DIMENSION],
)  # fmt: skip
def test_what_is_no_vector_is_a_fault_of_the_encoder_and_is_not_stored(
    cache: Cache, made: Any
) -> None:
    ask = Request("acme", "m", "What is new?")
    with SyncReader(replace(cache, encode=lambda _: made)) as reader:
        found = reader.get_or_compute(ask, lambda: "made")
        assert (found.answer, found.stored, found.vector) == ("made", True, None)
        last = found.evidence.looked[-1]
        assert (last.layer, last.found, last.error) == ("responses", "error", "ValueError")
        again = reader.lookup(ask)
        assert [look.found for look in again.evidence.looked] == ["absent", "hit"]


@pytest.mark.stack
def test_a_stored_vector_of_another_length_is_made_again(cache: Cache) -> None:
    ask = Request("acme", "m", "What is new?")
    key = cache.places.embedding("acme", cache.keys.identity(ask).text)
    with (
        SyncReader(replace(cache, encode=lambda _: [0.5] * DIMENSION)) as reader,
        redis.Redis.from_url(cache.url) as client,
    ):
        client.set(key, b"short", ex=60)
        found = reader.get_or_compute(ask, lambda: "made")
        assert found.evidence.looked[0].error == "ValueError"
        assert client.get(key) == struct.pack(f"<{DIMENSION}f", *[0.5] * DIMENSION)
        client.expire(key, 60)
        other = reader.get_or_compute(replace(ask, system_prompt="Be brief."), lambda: "made")
        assert other.evidence.looked[0].found == "hit"
        assert client.ttl(key) <= 60  # what is sound keeps its own lifetime
    with SyncReader(cache) as reader, pytest.raises(InputDataError, match="float32"):
        reader.store(ask, "made", b"short")


@pytest.mark.stack
@pytest.mark.parametrize(
    ("held", "error"),
    [
        ({"response": "a", "metadata": "[" * 100_000}, "RecursionError"),
        ({"response": "a", "metadata": "{"}, "JSONDecodeError"),
        ({"response": "", "metadata": "{}"}, "ValueError"),
    ],
)
def test_a_damaged_answer_is_replaced_by_the_next_one(
    cache: Cache, held: dict[str, str], error: str
) -> None:
    ask = Request("acme", "m", "What is new?")
    key = cache.places.answer(ask, cache.keys.identity(ask).response)
    with SyncReader(cache) as reader, redis.Redis.from_url(cache.url) as client:
        client.hset(key, mapping=held)
        client.expire(key, 60)
        found = reader.get_or_compute(ask, lambda: "made")
        assert faults(found) == {("absent", None), ("error", error)}
        assert reader.lookup(ask).answer == "made"


@pytest.mark.stack
def test_a_long_prompt_holds_nobody_up(cache: Cache, reading: Any) -> None:
    """Others on the loop go on while a text of 100,000 characters is taken apart."""
    draw = random.Random(1)
    words = ["Alice", "Bob", "Dresden", "not", "20", "cards"]
    ask = Request("acme", "m", " ".join(draw.choice(words) for _ in range(18_000)))

    async def work(reader: Reader) -> float:
        worst, last, done = 0.0, time.perf_counter(), False

        async def beat() -> None:
            nonlocal worst, last
            while not done:
                await asyncio.sleep(0.002)
                now = time.perf_counter()
                worst, last = max(worst, now - last), now

        async def compute() -> str:
            return "made"

        beating = asyncio.create_task(beat())
        found = await reader.get_or_compute(ask, compute)
        done = True
        await beating
        assert found.stored
        return worst

    assert reading(replace(cache, encode=lambda _: [0.5] * DIMENSION), work) < 0.25
