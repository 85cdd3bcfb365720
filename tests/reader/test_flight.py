"""Equal requests at one time share one computation, here and between processes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import redis

from tests.layers.building import axis
from warmup_lib.keys import Request
from warmup_lib.reader import Cache, Computed, Found, Reader

pytestmark = pytest.mark.stack
ASK = Request("acme", "m", "What is new?")


class Model:
    """Counts what it computes; an answer takes `s` seconds."""

    def __init__(self, s: float = 0.05, fails: bool = False, keep: bool = True) -> None:
        self.calls = 0
        self.s = s
        self.fails = fails
        self.keep = keep

    async def __call__(self) -> Computed:
        self.calls += 1
        number = self.calls
        await asyncio.sleep(self.s)
        if self.fails:
            raise ValueError("no model")
        return Computed(f"answer {number}", self.keep, detail=number)


def test_a_thousand_misses_at_one_time_cause_one_computation(cache: Cache, reading: Any) -> None:
    model = Model()

    async def work(reader: Reader) -> list[Found]:
        return await asyncio.gather(*(reader.get_or_compute(ASK, model) for _ in range(1000)))

    found = reading(replace(cache, encode=lambda _: axis(0)), work)
    assert model.calls == 1
    assert {one.answer for one in found} == {"answer 1"}
    assert sum(not one.joined for one in found) == 1
    assert {one.hit for one in found} == {False}
    assert all(one.stored and one.computed == Computed("answer 1", True, 1) for one in found)


def test_late_ones_find_what_was_stored_and_others_compute_for_themselves(
    cache: Cache, reading: Any
) -> None:
    model = Model(0)

    async def work(reader: Reader) -> list[Found]:
        asks = [ASK, ASK, Request("beta", "m", ASK.prompt), Request("acme", "m", "Else?")]
        return [await reader.get_or_compute(ask, model) for ask in asks]

    first, second, *others = reading(cache, work)
    assert (first.hit, first.stored) == (False, True)
    assert (second.hit, second.answer, second.computed) == (True, "answer 1", None)
    assert [one.answer for one in others] == ["answer 2", "answer 3"]


def test_lookups_that_begin_in_waves_compute_once(cache: Cache, reading: Any) -> None:
    """A look that read a miss before the answer was stored must not compute after it was."""
    model = Model(0.01)

    async def late(reader: Reader, n: int) -> Found:
        await asyncio.sleep(n / 10_000)
        return await reader.get_or_compute(ASK, model)

    async def work(reader: Reader) -> list[Found]:
        return await asyncio.gather(*(late(reader, n) for n in range(300)))

    assert {one.answer for one in reading(cache, work)} == {"answer 1"}
    assert model.calls == 1


def test_two_processes_compute_once(cache: Cache, reading: Any) -> None:
    """Two readers share nothing but the Redis, as two processes do."""
    model = Model(0.3)

    async def work(reader: Reader) -> list[Found]:
        async with Reader(cache) as other:
            readers = [reader, other] * 20
            return await asyncio.gather(*(one.get_or_compute(ASK, model) for one in readers))

    found = reading(cache, work)
    assert model.calls == 1
    assert {one.answer for one in found} == {"answer 1"}
    assert sum(not one.joined for one in found) == 1
    with redis.Redis.from_url(cache.url) as client:
        lock = cache.places.flight(ASK, cache.keys.identity(ASK).response)
        assert not client.exists(lock)


def test_a_lock_that_was_left_behind_delays_no_longer_than_its_time(
    cache: Cache, reading: Any
) -> None:
    short = replace(cache, lock_s=0.3)
    lock = cache.places.flight(ASK, cache.keys.identity(ASK).response)
    with redis.Redis.from_url(cache.url) as client:
        client.set(lock, "a process that is gone", px=60_000)
        model = Model(0)
        found = reading(short, lambda reader: reader.get_or_compute(ASK, model))
        assert (found.answer, found.stored, model.calls) == ("answer 1", True, 1)
        assert client.get(lock) == b"a process that is gone"  # it is not ours to take away
        client.delete(lock)


def test_one_that_gives_up_waiting_takes_nothing_from_the_others(
    cache: Cache, reading: Any
) -> None:
    model = Model(0.1)

    async def work(reader: Reader) -> Any:
        tasks = [asyncio.create_task(reader.get_or_compute(ASK, model)) for _ in range(3)]
        await asyncio.sleep(0.02)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, *others = reading(cache, work)
    assert isinstance(first, asyncio.CancelledError)
    assert [one.answer for one in others] == ["answer 1"] * 2
    assert model.calls == 1


def test_a_computation_that_fails_tells_all_who_wait_and_blocks_nobody_after(
    cache: Cache, reading: Any
) -> None:
    model = Model(0.02, fails=True)

    async def work(reader: Reader) -> Any:
        waiting = [reader.get_or_compute(ASK, model) for _ in range(5)]
        failed = await asyncio.gather(*waiting, return_exceptions=True)
        model.fails = False
        return failed, await reader.get_or_compute(ASK, model)

    failed, then = reading(cache, work)
    assert [type(one) for one in failed] == [ValueError] * 5
    assert (then.answer, model.calls) == ("answer 2", 2)


def test_what_is_not_to_be_kept_is_given_back_and_not_stored(cache: Cache, reading: Any) -> None:
    model = Model(0, keep=False)

    async def work(reader: Reader) -> list[Found]:
        return [await reader.get_or_compute(ASK, model) for _ in range(2)]

    found = reading(cache, work)
    assert [(one.answer, one.stored) for one in found] == [("answer 1", False), ("answer 2", False)]


def test_a_request_round_the_caches_computes_for_itself_and_leaves_nothing(
    cache: Cache, reading: Any
) -> None:
    model = Model(0.02)
    around = {"cache-control": "no-store"}

    async def work(reader: Reader) -> list[Found]:
        asks = [reader.get_or_compute(ASK, model, headers=around) for _ in range(2)]
        return [*await asyncio.gather(*asks), await reader.lookup(ASK)]

    *computed, after = reading(cache, work)
    assert [(one.answer, one.evidence.bypass) for one in computed] == [
        ("answer 1", "header"),
        ("answer 2", "header"),
    ]
    assert not after.hit
