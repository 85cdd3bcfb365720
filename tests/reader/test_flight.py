"""Equal requests at one time share one computation, here and between processes."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import redis
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from tests.layers.building import axis
from warmup_lib.keys import Request
from warmup_lib.observe.instruments import Instruments, using
from warmup_lib.reader import Cache, Computed, Found, Reader, SyncReader

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


def test_a_computation_that_asks_for_its_own_answer_is_refused_at_once(
    cache: Cache, reading: Any
) -> None:
    async def around_itself(reader: Reader, segment: str | None) -> Found:
        async def compute() -> str:
            found = await reader.get_or_compute(ASK, compute, user_segment=segment)
            return found.answer or ""

        return await reader.get_or_compute(ASK, compute)

    async def through_another(reader: Reader) -> tuple[Found, Found]:
        left: list[asyncio.Task[Found]] = []

        async def later() -> Found:
            await asyncio.sleep(0.05)
            return await reader.get_or_compute(ASK, Model(0))

        async def compute() -> str:
            left.append(asyncio.create_task(later()))
            other = await reader.get_or_compute(Request("acme", "m", "Part?"), Model(0))
            return f"from {other.answer}"

        return await reader.get_or_compute(ASK, compute), await left[0]

    for segment in (None, "vip"):  # by the same flight, and by the lock of another one
        with pytest.raises(RuntimeError, match="very answer"):
            reading(cache, lambda reader, told=segment: around_itself(reader, told))
    found, later = reading(cache, through_another)
    assert found.answer == later.answer == "from answer 1"
    with SyncReader(cache) as reader:
        other = Request("acme", "m", "Else?")

        def compute() -> str:
            return reader.get_or_compute(other, compute).answer or ""

        with pytest.raises(RuntimeError, match="very answer"):
            reader.get_or_compute(other, compute)


def test_threads_share_one_computation(cache: Cache) -> None:
    calls: list[int] = []

    def compute() -> Computed:
        calls.append(len(calls))
        time.sleep(0.1)
        return Computed("answer", detail=len(calls))

    with SyncReader(cache) as reader, ThreadPoolExecutor(32) as threads:
        asks = [threads.submit(reader.get_or_compute, ASK, compute) for _ in range(32)]
        found = [one.result() for one in asks]
        assert len(calls) == 1
        assert {(one.answer, one.stored or one.hit) for one in found} == {("answer", True)}
        assert sum(not (one.joined or one.hit) for one in found) == 1
        assert reader.get_or_compute(ASK, compute).hit
        around = reader.get_or_compute(ASK, compute, headers={"cache-control": "no-store"})
        assert (around.evidence.bypass, around.hit, len(calls)) == ("header", False, 2)


def test_threads_wait_for_what_an_event_loop_computes(cache: Cache, reading: Any) -> None:
    model = Model(0.3)

    async def work(reader: Reader) -> tuple[Found, Found]:
        computing = asyncio.create_task(reader.get_or_compute(ASK, model))
        await asyncio.sleep(0.1)
        with SyncReader(cache) as other:
            waiting = asyncio.to_thread(other.get_or_compute, ASK, lambda: "never")
            first, second = await asyncio.gather(computing, waiting)
            return first, second

    first, second = reading(cache, work)
    assert (first.answer, second.answer, second.joined) == ("answer 1", "answer 1", True)


def test_a_thread_whose_computation_fails_tells_all_who_wait_and_gives_the_lock_back(
    cache: Cache,
) -> None:
    def compute() -> str:
        time.sleep(0.1)
        raise ValueError("no model")

    with SyncReader(cache) as reader, ThreadPoolExecutor(4) as threads:
        asks = [threads.submit(reader.get_or_compute, ASK, compute) for _ in range(4)]
        assert [type(one.exception()) for one in asks] == [ValueError] * 4
        assert reader.get_or_compute(ASK, lambda: "made").stored


def test_who_joins_waits_for_the_look_and_is_timed_for_that_alone(
    cache: Cache, reading: Any
) -> None:
    metrics = InMemoryMetricReader()
    model = Model(0.2)

    async def work(reader: Reader) -> None:
        first = [asyncio.create_task(reader.get_or_compute(ASK, model)) for _ in range(3)]
        await asyncio.sleep(0.1)
        await asyncio.gather(*first, *(reader.get_or_compute(ASK, model) for _ in range(5)))

    with using(Instruments(MeterProvider([metrics]))):
        reading(cache, work)
    data = metrics.get_metrics_data()
    assert data is not None
    points = {
        metric.name: metric.data.data_points
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {point.value for point in points["cache.misses.total"]} == {8}
    [timed] = points["cache.lookup.duration"]
    assert timed.count == 3  # five came when the look was over
    assert timed.max < 0.1
    assert timed.min > timed.max / 4  # those who joined waited as long as the first one
