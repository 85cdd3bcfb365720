"""The measured parts, each of which begins by bringing the stack into the state that it needs.

Every part returns JSON, which is kept: a run that was broken off goes on after its last whole part.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench.effect import figures
from bench.effect.bed import LOADED, Bed, Opened
from bench.effect.gateway import Gateway, Manner, Sample, answer_cache
from bench.effect.load import one_at_a_time, too_late, when_due
from bench.effect.traffic import Ask, at_rate, busiest, firsts
from warmup_lib import pipeline
from warmup_lib.targets.chat import Chat, Head

Rows = list[dict[str, Any]]
Timed = Sequence[tuple[float, Ask]]


@dataclass(frozen=True)
class Extent:
    """How much is measured.

    Attributes:
        scale: Size of the log.
        firsts: First requests of long heads to have at least.
        restarts: Rounds, of these, in which both arms begin with a real restart.
        long_tokens: From this length on a head is long.
        begin: First rate of the cold and of the warm stack, requests a second.
        least: Lowest rate to try.
        most: Highest rate to try.
        step_s: Length of a step.
        limits_ms: First-token limits at which the sustained rate is sought; the first one is the
            stated SLO, and the only one with answers on.
        minutes: When after warming planned heads are looked at, the last one being the end.
        answers_rate: Rate of the replay with answers, requests a second.
        answers_s: How long the cold stack gets it; the warm one until the last of `minutes`.
    """

    scale: float = 1.0
    firsts: int = 200
    restarts: int = 2
    long_tokens: int = 1200
    begin: tuple[float, float] = (0.5, 2.0)
    least: float = 0.25
    most: float = 16.0
    step_s: float = 60.0
    limits_ms: tuple[float, ...] = (500.0, 3000.0)
    minutes: tuple[float, ...] = (0.0, 1.0, 5.0, 15.0)
    answers_rate: float = 0.4
    answers_s: float = 180.0


QUICK = Extent(
    scale=0.1,
    firsts=12,
    restarts=1,
    begin=(0.5, 0.5),
    least=0.25,
    most=1.0,
    step_s=10.0,
    minutes=(0.0, 0.25, 0.5),
    answers_rate=0.5,
    answers_s=15.0,
)


@dataclass(frozen=True)
class Setting:
    """What all parts share.

    Attributes:
        bed: Log, lake, plan and stack.
        extent: How much is measured.
        run: A word that no other run has, of which salts are made.
        day: The later day, ISO date.
        asks: Its requests that can be served.
        tokens: Tokens of each head, by digest.
        block: Tokens of a cache block.
    """

    bed: Bed
    extent: Extent
    run: str
    day: str
    asks: Sequence[Ask]
    tokens: dict[str, int]
    block: int

    @property
    def planned(self) -> set[tuple[str, str]]:
        """Tenant and head of what the plan warms."""
        return {(item.tenant, item.key_digest) for item in self.bed.heads}

    @property
    def peak(self) -> list[Ask]:
        """The requests from the begin of the peak hour on, the day's earlier ones behind them."""
        hour = busiest(self.asks)[0]
        later = [ask for ask in self.asks if ask.hour >= hour]
        return later + [ask for ask in self.asks if ask.hour < hour]

    def is_long(self, head: str) -> bool:
        """Say whether a head is long."""
        return self.tokens[head] >= self.extent.long_tokens

    def gateway(
        self, opened: Opened, manner: Manner, planned: Collection[tuple[str, str]]
    ) -> Gateway:
        """Return a gateway over the opened targets."""
        find = None
        if manner.answers:
            find = answer_cache(opened.store, opened.context, self.bed.config, manner.cold)
        return Gateway(opened.http, opened.context, planned, self.tokens, manner, find)


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

    facts["samples"] = _rows(asyncio.run(send()))
    return facts


# -- rates -------------------------------------------------------------------------------------


def rates(setting: Setting, arm: str) -> dict[str, Any]:
    """Search the rates that a stack sustains in its first minute, without and with answers.

    Each step finds what a restart (and warming) leaves. The plan is applied again to the warm
    stack, which renews what went before displaced; heads that the plan does not warm, and all heads
    of the cold stack, get salts that were never used; and the step's mark before each question
    keeps everything behind a head from being found.
    """
    bed, extent = setting.bed, setting.extent
    result: dict[str, Any] = {}
    if arm == "cold":
        result["restart_s"] = bed.restart()
        bed.load()
    else:
        bed.ensure()
        result["apply"] = bed.apply(resume=True)
    result["off"] = _search(setting, arm, Manner(answer=True), extent.limits_ms)
    manner = Manner(answer=True, answers=True)
    result["on"] = _search(setting, arm, manner, extent.limits_ms[:1])
    return result


def _search(setting: Setting, arm: str, manner: Manner, limits: Sequence[float]) -> Rows:
    extent = setting.extent
    steps: list[figures.Step] = []
    rows: Rows = []
    seek = partial(
        figures.next_rate,
        limits=limits,
        begin=extent.begin[arm == "warm"],
        least=extent.least,
        most=extent.most,
    )
    while (rate := seek(steps)) is not None:
        if arm == "warm":
            setting.bed.apply(["prefixes"])
        mark = f"{'b' if manner.answers else 'a'}{len(steps)}"
        word = f"{setting.run}-{arm}-{mark}"
        how = replace(manner, cold=word if arm == "cold" else None, other=word, mark=f"({mark}) ")
        samples = asyncio.run(_offer(setting, how, rate, max(limits)))
        steps.append(figures.Step(rate, [sample.first_ms for sample in samples]))
        rows.append({"rate": rate, "samples": _rows(samples)})
    return rows


async def _offer(setting: Setting, manner: Manner, rate: float, loosest: float) -> list[Sample]:
    async with setting.bed.opened() as opened:
        return await when_due(
            setting.gateway(opened, manner, setting.planned),
            at_rate(setting.peak, rate, setting.extent.step_s),
            grace_s=loosest / 1000,
            hopeless=too_late(loosest),
        )


# -- answers and decay -------------------------------------------------------------------------


def answers_cold(setting: Setting) -> dict[str, Any]:
    """Replay the peak hour with an empty answer cache to a cold host."""
    setting.bed.ensure()
    extent = setting.extent
    timed = _background(setting, extent.answers_s)
    manner = Manner(cold=f"{setting.run}-cold-answers", mark="(c) ", answer=True, answers=True)

    async def send() -> list[Sample]:
        async with setting.bed.opened() as opened:
            return await when_due(setting.gateway(opened, manner, ()), timed, grace_s=60)

    return {"samples": _rows(asyncio.run(send()))}


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
    result |= {"samples": _rows(samples), "looks": looks}
    return {**result, "hit_ratio": verified["hit_ratio"]}


def _background(setting: Setting, seconds: float) -> Timed:
    return at_rate(setting.peak, setting.extent.answers_rate, seconds)


async def _look(
    setting: Setting,
    opened: Opened,
    group: Sequence[Any],
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


def _rows(samples: Sequence[Sample]) -> Rows:
    return [sample.row() for sample in samples]
