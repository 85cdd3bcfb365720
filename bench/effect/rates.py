"""Measured part: how many requests a second a stack sustains in its first minute."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.effect import figures
from bench.effect.gateway import Manner, Sample
from bench.effect.load import too_late, when_due
from bench.effect.setting import Rows, Setting, rows_of
from bench.effect.traffic import Ask, at_rate


@dataclass(frozen=True)
class Series:
    """Which requests are offered at rising rates, and how.

    Attributes:
        name: Its name in the report.
        adapters: Requests for adapters are in it.
        answers: An answer is looked for first.
        limits: How many of the limits are searched.
    """

    name: str
    adapters: bool
    answers: bool
    limits: int


SERIES = (
    Series("base model", adapters=False, answers=False, limits=2),
    Series("all", adapters=True, answers=False, limits=1),
    Series("all, answers on", adapters=True, answers=True, limits=1),
)


def rates(setting: Setting, arm: str) -> dict[str, Any]:
    """Search the rates that a stack sustains in its first minute, series by series.

    Each step finds what a restart (and warming) leaves. Heads that the plan does not warm, and all
    heads of the cold stack, get salts that were never used; the step's mark before each question
    keeps everything behind a head from being found; before each series the plan is applied to the
    warm stack again, and samples tell whether the planned heads were still whole.
    """
    bed = setting.bed
    result: dict[str, Any] = {}
    if arm == "cold":
        result["restart_s"] = bed.restart()
        bed.load()
    else:
        bed.ensure()
        result["apply"] = bed.apply(resume=True)
    result["series"] = {
        one.name: _search(setting, arm, one, number) for number, one in enumerate(SERIES)
    }
    return result


def _search(setting: Setting, arm: str, series: Series, number: int) -> Rows:
    extent = setting.extent
    limits = extent.limits_ms[: series.limits]
    asks = [ask for ask in setting.peak if series.adapters or ask.lookup.adapter is None]
    if arm == "warm":
        setting.bed.apply(["prefixes"])
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
        mark = f"{'abc'[number]}{len(steps)}"
        word = f"{setting.run}-{arm}-{mark}"
        manner = Manner(
            cold=word if arm == "cold" else None,
            other=word,
            mark=f"({mark}) ",
            answer=True,
            answers=series.answers,
        )
        timed = at_rate(asks, rate, extent.step_s)
        samples = asyncio.run(_offer(setting, manner, timed, max(limits)))
        steps.append(figures.Step(rate, [sample.first_ms for sample in samples]))
        rows.append({"rate": rate, "samples": rows_of(samples)})
    return rows


async def _offer(
    setting: Setting, manner: Manner, timed: Sequence[tuple[float, Ask]], loosest: float
) -> list[Sample]:
    async with setting.bed.opened() as opened:
        return await when_due(
            setting.gateway(opened, manner, setting.planned),
            timed,
            grace_s=loosest / 1000,
            hopeless=too_late(loosest),
        )
