"""A measurement does not push out what it measures."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import pytest

from tests.apply.memory import MemoryHost, MemoryLayer
from tests.verify.test_replay import context
from tests.verify.world import request, requests
from warmup_lib.layers.base import Context, Lookup, Match
from warmup_lib.verify.crowding import Crowding
from warmup_lib.verify.replay import on_hosts

PROMPT, HEADS, SPACE = 500, 10, 20_000


class Lru(MemoryLayer):
    """Prompts on a host whose cache drops what was used longest ago."""

    def __init__(self) -> None:
        super().__init__("prefixes", "host")
        self.cache = OrderedDict.fromkeys([f"{head:032x}" for head in range(HEADS)], PROMPT)

    async def find(
        self,
        lookups: Sequence[Lookup],
        target: Any,  # noqa: ARG002
        context: Context,
    ) -> list[Match]:
        [one] = lookups
        key = one.head_digest if context.control is None else one.request_id
        hit = key in self.cache
        self.cache[key] = PROMPT
        self.cache.move_to_end(key)
        while sum(self.cache.values()) > SPACE:
            self.cache.popitem(last=False)
        cached = PROMPT if hit else 0
        return [Match(one.request_id, hit, prompt_tokens=PROMPT, cached_tokens=cached, ttft_ms=1.0)]


@pytest.mark.parametrize(("room", "lost"), [({}, 9), ({"h": SPACE - HEADS * PROMPT}, 0)])
def test_cold_requests_push_no_planned_head_out(room: dict[str, int], lost: int) -> None:
    # One head is asked for all the time, the others once, late.
    rows = requests(*[request(n, max(0, n - 90)) for n in range(100)])
    replayed = asyncio.run(
        on_hosts(
            Lru(),
            [MemoryHost("h")],
            rows,
            context(host_sample=100, cold_sample=100),
            {f"{head:032x}" for head in range(HEADS)},
            {},
            room,
            {},
            lambda *_: None,
        )
    )
    assert replayed.lost == lost
    assert replayed.control_asked + replayed.uncrowded == 100
    cold = [n for n, row in enumerate(replayed.rows) if row["cold_ttft_ms"] is not None]
    assert len(cold) == replayed.control_asked
    assert len([n for n in cold if n < 50]) == pytest.approx(len(cold) / 2, abs=2)  # all day long
    assert len(cold) >= (100 if not room else 20)


def test_a_host_that_does_not_tell_its_size_takes_any_number() -> None:
    crowding = Crowding({"told": 0}, 10)
    cold = Match("r", False, prompt_tokens=10**6, cached_tokens=0)
    for name in ("told", "silent"):
        crowding.took(name, cold, cold=True)
    assert [crowding.allows(name, 9) for name in ("told", "silent")] == [False, True]
