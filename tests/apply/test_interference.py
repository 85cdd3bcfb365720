"""Warm-up requests to a small real host wait where its live requests suffer, and only there."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.targets.tiny_host import MODEL, TinyHost, serving
from warmup_lib.apply import interference, pace
from warmup_lib.apply.interference import Guard, WindowOver
from warmup_lib.config import ApplyConfig
from warmup_lib.errors import HostUnavailable
from warmup_lib.targets.chat import Chat, Head
from warmup_lib.targets.host import ModelHost


class Loaded(TinyHost):
    """Answers after a while, tells its load, and has live requests that the test makes up."""

    def __init__(self) -> None:
        super().__init__()
        self.takes = 0.03
        self.tells = True
        self.waiting = 0
        self.tokens = 40
        self.seconds = 4.0
        self.looks = 0
        self.now = 0
        self.most = 0
        self.guarded = threading.Lock()

    def live(self, number: int, each: float) -> None:
        with self.guarded:
            self.tokens += number
            self.seconds += number * each

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.guarded:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.takes)
        with self.guarded:
            self.now -= 1
        self.live(1, self.takes)
        return super().chat(body)

    def metrics(self) -> str:
        self.looks += 1
        if not self.tells:
            return super().metrics()
        label = '{engine="0",model_name="tiny"}'
        return super().metrics() + (
            f"vllm:num_requests_waiting{label} {self.waiting}.0\n"
            f"vllm:time_to_first_token_seconds_count{label} {self.tokens}.0\n"
            f"vllm:time_to_first_token_seconds_sum{label} {self.seconds}\n"
        )


@pytest.fixture
def tiny() -> Iterator[Loaded]:
    with serving(Loaded()) as host:
        assert isinstance(host, Loaded)
        yield host


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interference, "POLL_S", 0.04)
    monkeypatch.setattr(interference, "_WAY_S", 0.01)
    quick = {
        "_SILENCE_S": 0.1,
        "_FIRST_LISTEN_S": 0.4,
        "_LISTEN_S": 0.4,
        "_RISE_S": 0.15,
        "_ALONE_S": 0.3,
    }
    for name, seconds in quick.items():
        monkeypatch.setattr(pace, name, seconds)


Work = Callable[[ModelHost, Guard], Awaitable[Any]]


def guarded(tiny: Loaded, work: Work, *, window_s: float = 60.0, **settings: Any) -> Guard:
    """Run some work against the guarded host; return its guard."""
    limits = settings.pop("interference", {})
    config = ApplyConfig.model_validate({"interference": {"rate": 500.0, **limits}, **settings})

    async def go() -> Guard:
        host = ModelHost("gpu", tiny.url, concurrency=config.concurrency)
        try:
            async with Guard(host, config, time.monotonic() + window_s) as guard:
                await work(host, guard)
            assert host.gate is None
            return guard
        finally:
            await host.close()

    return asyncio.run(go())


def chat(user: str = "hello", **options: Any) -> Chat:
    return Chat(Head(MODEL, "you help"), user, **options)


async def many(host: ModelHost, number: int) -> None:
    await asyncio.gather(*[host.chat(chat(f"item {n}")) for n in range(number)])


def test_our_own_requests_are_told_from_live_ones(tiny: Loaded) -> None:
    async def alone(host: ModelHost, _: Guard) -> None:
        await many(host, 30)

    guard = guarded(tiny, alone, concurrency=1)
    facts = guard.facts()
    # Ours took 30 ms each, live ones none at all: had they been mixed up, there would be a figure.
    assert facts["live_first_token_ms"] is None
    assert (facts["pauses"], facts["peak_concurrency"]) == (0, 1)


def test_it_pauses_while_live_first_tokens_are_slow(tiny: Loaded) -> None:
    times: list[float] = []

    async def beside(host: ModelHost, _: Guard) -> None:
        async def live() -> None:
            while True:
                await asyncio.sleep(0.02)
                tiny.live(1, 0.5 if tiny.now else 0.05)

        traffic = asyncio.create_task(live())
        for number in range(12):
            await host.chat(chat(f"item {number}"))
            times.append(time.monotonic())
        traffic.cancel()

    facts = guarded(tiny, beside).facts()
    assert facts["pauses"] >= 2
    assert facts["live_first_token_ms"] == pytest.approx(50, abs=10)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert max(gaps) > 0.1 > 2 * tiny.takes
    assert 0.1 < facts["paused_s"] < times[-1] - times[0] + 1


@pytest.mark.slow  # it needs a machine that is not busy: it tells slow answers from usual ones
def test_a_live_queue_holds_it_and_lets_live_requests_pass(tiny: Loaded) -> None:
    tiny.waiting = 3

    async def queued(host: ModelHost, _: Guard) -> None:
        ours = asyncio.create_task(host.chat(chat()))
        await asyncio.sleep(0.6)
        assert not ours.done()
        assert tiny.requests == []
        await host.chat(chat("a live one", low_priority=False))
        tiny.waiting = 0
        await asyncio.wait_for(ours, 1)

    guarded(tiny, queued)
    assert len(tiny.requests) == 2


def test_ours_in_the_queue_do_not_stop_us(tiny: Loaded) -> None:
    tiny.takes = 0.6

    async def waits(host: ModelHost, _: Guard) -> None:
        ours = asyncio.create_task(host.chat(chat()))
        while not tiny.now:
            await asyncio.sleep(0.01)
        tiny.waiting = 1
        await asyncio.sleep(0.2)
        tiny.waiting = 0
        await ours

    assert guarded(tiny, waits).facts()["pauses"] == 0


def test_requests_in_flight_begin_at_one_and_rise(tiny: Loaded) -> None:
    peaks: list[int] = []

    async def rising(host: ModelHost, _: Guard) -> None:
        await many(host, 2)
        peaks.append(tiny.most)
        await many(host, 120)

    # A machine that is busy with other things makes our answers differ: it must not be judged.
    facts = guarded(tiny, rising, concurrency=3, interference={"slowdown": 50.0}).facts()
    assert peaks == [1]
    assert tiny.most == facts["peak_concurrency"] == 3


def test_the_rate_is_kept(tiny: Loaded) -> None:
    tiny.takes = 0.0
    began: list[float] = []

    async def timed(host: ModelHost, _: Guard) -> None:
        await host.chat(chat())
        began.append(time.monotonic())
        await many(host, 5)
        began.append(time.monotonic())

    guarded(tiny, timed, interference={"rate": 10.0})
    assert began[1] - began[0] >= 0.48


def test_at_the_end_of_the_window_what_is_in_flight_is_finished_and_nothing_sent(
    tiny: Loaded,
) -> None:
    tiny.takes = 0.3

    async def ends(host: ModelHost, _: Guard) -> list[Any]:
        results = await asyncio.gather(
            *[host.chat(chat(f"item {n}")) for n in range(12)], return_exceptions=True
        )
        kinds = [type(r).__name__ for r in results]
        assert 0 < kinds.count("ChatResult") == len(tiny.requests) < 12
        assert kinds.count("WindowOver") == 12 - len(tiny.requests)
        with pytest.raises(WindowOver):
            await host.chat(chat())
        return results

    guarded(tiny, ends, window_s=1.5, concurrency=1)


def test_looks_are_few_however_many_requests(tiny: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interference, "POLL_S", 0.3)
    tiny.takes = 0.0
    began = time.monotonic()
    guarded(tiny, lambda host, _: many(host, 200))
    assert 2 <= tiny.looks <= (time.monotonic() - began) / 0.3 + 1


@pytest.mark.slow  # it needs a machine that is not busy: it tells slow answers from usual ones
def test_a_host_that_tells_no_load_is_not_looked_at_again(tiny: Loaded) -> None:
    tiny.tells = False

    async def slower(host: ModelHost, _: Guard) -> None:
        for _i in range(5):
            await host.chat(chat())
        tiny.takes = 0.2
        for _i in range(4):
            await host.chat(chat())

    facts = guarded(tiny, slower, concurrency=1).facts()
    assert tiny.looks == 1
    assert facts["pauses"] >= 1
    assert facts["paused_s"] >= 0.4


def test_longer_answers_are_not_taken_for_first_tokens(tiny: Loaded) -> None:
    tiny.takes = 0.2

    async def answers(host: ModelHost, _: Guard) -> None:
        for _i in range(4):
            await host.chat(chat(max_tokens=50))

    facts = guarded(tiny, answers).facts()
    assert (facts["pauses"], facts["live_first_token_ms"]) == (0, None)


def test_a_dead_host_is_learnt_from_the_request_and_never_waited_for() -> None:
    async def go() -> None:
        host = ModelHost("gpu", "http://127.0.0.1:1")
        async with Guard(host, ApplyConfig(), time.monotonic() + 60):
            with pytest.raises(HostUnavailable, match="no connection"):
                await asyncio.wait_for(host.chat(chat()), 2)
        await host.close()

    asyncio.run(go())


def test_no_more_items_are_begun_than_requests_may_be_in_flight(tiny: Loaded) -> None:
    most = now = 0
    whole: list[int] = []

    async def several(host: ModelHost, guard: Guard) -> None:
        async def item(number: int) -> None:
            nonlocal most, now
            async with guard.place():
                now += 1
                most = max(most, now)
                for step in range(5):
                    await host.chat(chat(f"item {number} step {step}"))
                now -= 1
            whole.append(number)

        await asyncio.gather(*[item(n) for n in range(40)], return_exceptions=True)

    guarded(tiny, several, window_s=2.0, concurrency=1)
    assert most == 1
    assert whole == list(range(len(whole)))
    assert 5 * len(whole) <= len(tiny.requests) <= 5 * len(whole) + 4
