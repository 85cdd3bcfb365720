"""Measured parts: first requests, answers, decay. Each brings the stack into the state it needs.

Every part returns JSON, which is kept: a run that was broken off goes on after its last whole part.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from typing import Any

from bench.effect.bed import LOADED, Opened
from bench.effect.gateway import Manner, Sample
from bench.effect.load import one_at_a_time, when_due
from bench.effect.setting import Rows, Setting, rows_of
from bench.effect.traffic import Ask, at_rate, busiest, firsts
from warmup_lib import pipeline
from warmup_lib.layers.base import PlanItem
from warmup_lib.targets.chat import Chat, Head

# -- first requests ----------------------------------------------------------------------------


def rounds(setting: Setting) -> list[list[Ask]]:
    """Return the first requests of each (tenant, head) in the busiest hours, one list an hour.

    So many hours that there are enough first requests of long heads.
    """
    chosen: list[list[Ask]] = []
    long = 0
    for hour in busiest(setting.asks):
        if long >= setting.extent.firsts:
            break
        within = firsts((a for a in setting.asks if a.hour == hour), lambda ask: ask.head)
        long += sum(setting.is_long(ask.lookup.head_digest) for ask in within)
        chosen.append(within)
    return chosen


def first_requests(setting: Setting, number: int, asks: Sequence[Ask]) -> dict[str, Any]:
    """Send first requests to the cold and to the warm stack, in turn the one or the other first.

    Args:
        setting: What all parts share.
        number: Of the round. The first ones begin each arm with a restart; in the others salts are
            made under a secret of their own, so that nothing is cached under them.
        asks: The first requests, in order of arrival.
    """
    restart = number < setting.extent.restarts
    arms = ("cold", "warm") if number % 2 == 0 else ("warm", "cold")
    result: dict[str, Any] = {"restart": restart}
    if not restart:
        setting.bed.ensure()
        setting.bed.load()
    for arm in arms:
        result[arm] = _arm(setting, arm, number, asks, restart)
    return result


def _arm(
    setting: Setting, arm: str, number: int, asks: Sequence[Ask], restart: bool
) -> dict[str, Any]:
    bed = setting.bed
    word = None if restart else f"{setting.run} {number} {arm}"
    facts: dict[str, Any] = {}
    if restart:
        facts["restart_s"] = bed.restart()
    if arm == "warm":
        layers = [n for n in bed.host_layers if restart or n not in LOADED]
        facts["apply"] = bed.apply(layers, word=word)
    elif restart:
        bed.load()

    async def send() -> list[Sample]:
        async with bed.opened(word) as opened:
            gateway = setting.gateway(opened, Manner(), setting.planned)
            return await one_at_a_time(gateway, asks)

    facts["samples"] = rows_of(asyncio.run(send()))
    return facts


# -- answers and decay -------------------------------------------------------------------------


def answers_cold(setting: Setting) -> dict[str, Any]:
    """Replay the peak hour with an empty answer cache to a cold host."""
    setting.bed.ensure()
    setting.bed.load()
    extent = setting.extent
    timed = _background(setting, extent.answers_s)
    manner = Manner(cold=f"{setting.run}-cold-answers", mark="(c) ", answer=True, answers=True)

    async def send() -> list[Sample]:
        async with setting.bed.opened() as opened:
            return await when_due(setting.gateway(opened, manner, ()), timed, grace_s=60)

    return {"samples": rows_of(asyncio.run(send()))}


def answers_and_decay(setting: Setting) -> dict[str, Any]:
    """Warm everything after a restart, replay the peak hour with answers, look at heads meanwhile.

    Each look is at other planned heads, so that no look keeps warm what a later one finds. At the
    end the plan is verified on the whole day.
    """
    bed, extent = setting.bed, setting.extent
    result: dict[str, Any] = {"restart_s": bed.restart(), "apply": bed.apply()}
    long = [item for item in bed.heads if setting.is_long(item.key_digest)]
    groups = [long[k :: len(extent.minutes)] for k in range(len(extent.minutes))]
    timed = _background(setting, 60 * extent.minutes[-1])
    manner = Manner(other=f"{setting.run}-warm-answers", mark="(d) ", answer=True, answers=True)
    live = {ask.head for _, ask in timed}

    async def send() -> tuple[list[Sample], list[Rows]]:
        async with bed.opened() as opened, AsyncExitStack() as ending:
            gateway = setting.gateway(opened, manner, setting.planned)
            begin = time.perf_counter()
            looks = [await _look(setting, opened, groups[0], live, 0.0)]
            traffic = asyncio.create_task(when_due(gateway, timed, grace_s=60))
            ending.callback(traffic.cancel)
            for minute, group in list(zip(extent.minutes, groups, strict=True))[1:]:
                await asyncio.sleep(max(0.0, begin + 60 * minute - time.perf_counter()))
                passed = (time.perf_counter() - begin) / 60
                looks.append(await _look(setting, opened, group, live, passed))
            return await traffic, looks

    samples, looks = asyncio.run(send())
    verified = pipeline.verify(bed.config, bed.plan_id, day=setting.day).facts
    result |= {"samples": rows_of(samples), "looks": looks}
    return {**result, "hit_ratio": verified["hit_ratio"]}


def _background(setting: Setting, seconds: float) -> Sequence[tuple[float, Ask]]:
    return at_rate(setting.peak, setting.extent.answers_rate, seconds)


async def _look(
    setting: Setting,
    opened: Opened,
    group: Sequence[PlanItem],
    live: Collection[tuple[str, str]],
    minutes: float,
) -> Rows:
    """Ask for one token under each head and see how long it takes and what was cached."""
    found = []
    for item in group:
        adapter = opened.context.adapter(item.adapter)
        head = Head(item.model, item.system_prompt, item.tools, adapter)
        salt = opened.context.keys.salt(item.tenant, adapter)
        answer = await opened.host.chat(
            Chat(head, "What else is there?", salt=salt, low_priority=False, stream=True)
        )
        tokens = setting.tokens[item.key_digest]
        blocks = tokens // setting.block * setting.block
        found.append(
            {
                "minutes": minutes,
                "live": (item.tenant, item.key_digest) in live,
                "first_ms": answer.ttft_ms,
                "cached_share": min(answer.cached_tokens or 0, blocks) / blocks,
            }
        )
    return found
