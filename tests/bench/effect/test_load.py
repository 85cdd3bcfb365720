from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, cast

import pytest

from bench.effect.gateway import Gateway, Sample
from bench.effect.load import one_at_a_time, too_late, when_due
from bench.effect.traffic import Ask, asks_of
from tests.verify.world import request, requests

ASKS = asks_of(requests(*(request(n, n) for n in range(6))))


class Slow:
    """A gateway whose first token comes after a while, and whose answer ends after another."""

    def __init__(self, first_s: float, rest_s: float = 0.0, *, broken: bool = False) -> None:
        self.broken = broken
        self.first_s = first_s
        self.rest_s = rest_s
        self.now = 0
        self.most = 0
        self.sent: list[str] = []

    def sample(self, ask: Ask) -> Sample:
        one = ask.lookup
        return Sample(
            one.request_id, one.tenant, one.head_digest, one.response_digest, None, True, 64
        )

    async def send(self, ask: Ask, sample: Sample, due: float) -> None:
        if self.broken:
            raise RuntimeError("the host answers 500")
        self.sent.append(ask.lookup.request_id)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.first_s)
            sample.first_ms = (time.perf_counter() - due) * 1000
            await asyncio.sleep(self.rest_s)
        finally:
            self.now -= 1


def replay(slow: Slow, dues: Sequence[float], **options: Any) -> list[Sample]:
    timed = list(zip(dues, ASKS, strict=False))
    return asyncio.run(when_due(cast("Gateway", slow), timed, **options))


def test_one_at_a_time_never_has_two_in_flight() -> None:
    slow = Slow(0.01)
    samples = asyncio.run(one_at_a_time(cast("Gateway", slow), ASKS))
    assert slow.most == 1
    assert [sample.request_id for sample in samples] == [f"r{n}" for n in range(6)]
    assert all(10 <= (sample.first_ms or 0) < 100 for sample in samples)


def test_requests_are_sent_when_due_whatever_became_of_the_others() -> None:
    slow = Slow(0.3)
    samples = replay(slow, [0, 0.05, 0.1], grace_s=5)
    assert slow.most == 3
    assert all(300 <= (sample.first_ms or 0) < 600 for sample in samples)


def test_what_came_in_time_is_known_where_the_answer_is_broken_off() -> None:
    slow = Slow(0.05, rest_s=60)
    begun = time.perf_counter()
    samples = replay(slow, [0, 0.1], grace_s=0.5)
    assert time.perf_counter() - begun < 5
    assert all(sample.first_ms is not None for sample in samples)
    assert slow.now == 0


def test_a_hopeless_step_ends_early_and_the_unsent_are_late() -> None:
    slow = Slow(0.2)
    samples = replay(slow, [0, 30, 60], grace_s=1, hopeless=too_late(100))
    assert slow.sent == ["r0"]
    assert [sample.first_ms is None for sample in samples] == [False, True, True]


def test_an_error_of_the_host_ends_the_measurement() -> None:
    with pytest.raises(RuntimeError, match="500"):
        replay(Slow(0, broken=True), [0], grace_s=1)
