"""Sends requests: one at a time, or when they are due whatever became of the ones before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from bench.effect.figures import lost
from bench.effect.gateway import Gateway, Sample
from bench.effect.traffic import Ask


async def one_at_a_time(gateway: Gateway, asks: Sequence[Ask]) -> list[Sample]:
    """Send each request once the one before has ended: no first token waits behind another."""
    samples = []
    for ask in asks:
        sample = gateway.sample(ask)
        await gateway.send(ask, sample, time.perf_counter())
        samples.append(sample)
    return samples


async def when_due(
    gateway: Gateway,
    timed: Sequence[tuple[float, Ask]],
    *,
    grace_s: float,
    hopeless: Callable[[Sequence[Sample], int], bool] = lambda _samples, _offered: False,
) -> list[Sample]:
    """Send each request when it is due and return one sample for each, sent or not.

    What has not ended `grace_s` after the last one was due is broken off: what came in time is
    known by then.

    Args:
        gateway: Where to send.
        timed: Seconds from now and request, in order.
        grace_s: Seconds.
        hopeless: Told, each quarter of a second, of the samples that can't improve any more, and
            of how many are offered in all; when it says so, the rest is not sent.
    """
    begin = time.perf_counter()
    samples = [gateway.sample(ask) for _, ask in timed]
    for (due, _), sample in zip(timed, samples, strict=True):
        sample.due = due

    async def send(due: float, ask: Ask, sample: Sample) -> None:
        await asyncio.sleep(begin + due - time.perf_counter())
        await gateway.send(ask, sample, begin + due)

    tasks = [
        asyncio.create_task(send(due, ask, sample))
        for (due, ask), sample in zip(timed, samples, strict=True)
    ]
    end = timed[-1][0] + grace_s
    waiting = set(tasks)
    try:
        while waiting and (now := time.perf_counter() - begin) < end:
            settled = [s for s in samples if s.first_ms is not None or s.due < now - grace_s]
            if hopeless(settled, len(samples)):
                break
            _, waiting = await asyncio.wait(waiting, timeout=0.25)
    finally:
        for task in waiting:
            task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    for one in ended:
        if isinstance(one, Exception):
            raise one
    return samples


def too_late(limit_ms: float) -> Callable[[Sequence[Sample], int], bool]:
    """Return what says that a step can't hold any more under this limit."""

    def hopeless(settled: Sequence[Sample], offered: int) -> bool:
        return lost([sample.first_ms for sample in settled], offered, limit_ms)

    return hopeless
