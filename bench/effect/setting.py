"""How much is measured, and what all measured parts share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from bench.effect.bed import Bed, Opened
from bench.effect.gateway import Gateway, Manner, Sample, answer_cache
from bench.effect.traffic import Ask, busiest

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Extent:
    """How much is measured.

    Attributes:
        scale: Size of the log.
        firsts: First requests of long heads to have at least.
        restarts: Rounds in which both arms begin with a restart.
        long_tokens: From this length on a head is long.
        begin: First rate of the cold and of the warm stack, requests a second.
        least: Lowest rate to try.
        most: Highest rate to try.
        step_s: Length of a step.
        limits_ms: First-token limits at which the sustained rate is sought; the first one is the
            stated SLO.
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
    limits_ms: tuple[float, ...] = (500.0, 5000.0)
    minutes: tuple[float, ...] = (0.0, 1.0, 5.0, 15.0)
    answers_rate: float = 0.4
    answers_s: float = 180.0


QUICK = Extent(
    scale=0.1,
    firsts=20,
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


def rows_of(samples: Sequence[Sample]) -> Rows:
    """Return samples as JSON."""
    return [sample.row() for sample in samples]
