"""What a layer cost on a target: items, time, memory and tokens, measured as it was warmed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from warmup_lib.errors import TargetUnavailable
from warmup_lib.layers.base import Outcome
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import RedisStore


@dataclass
class Cost:
    """The cost of one layer on one target.

    Attributes:
        items: Items that were warmed.
        seconds: Wall time.
        written: Bytes that the layer says it took.
        grown: By how much the memory of a Redis grew; None: not a Redis, or not known.
        tokens: Tokens that a host computed.
        issued: Warm-up steps sent, to all ranks; 0: the layer has none.
        effective: Of these, how many worked.
    """

    items: int = 0
    seconds: float = 0.0
    written: int = 0
    grown: int | None = None
    tokens: int = 0
    issued: int = 0
    effective: int = 0

    @property
    def memory(self) -> int:
        """Bytes of memory taken: as the target measures it, else as the layer says."""
        return self.written if self.grown is None else self.grown

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Add what warming some items took."""
        self.items += sum(outcome.status == "warmed" for outcome in outcomes)
        self.written += sum(outcome.bytes for outcome in outcomes)
        self.tokens += sum(outcome.tokens for outcome in outcomes)
        for outcome in outcomes:
            if outcome.effective is not None:
                self.issued += outcome.issued * len(outcome.effective)
                self.effective += sum(outcome.effective)

    def facts(self) -> dict[str, Any]:
        """Return the figures; those of steps where there were any."""
        told = {"items": self.items, "seconds": round(self.seconds, 3)}
        told |= {"bytes": self.memory, "tokens": self.tokens}
        return told | ({"issued": self.issued, "effective": self.effective} if self.issued else {})


@asynccontextmanager
async def measured(target: Target) -> AsyncIterator[Cost]:
    """Measure what happens on a target meanwhile."""
    cost = Cost()
    before = await _used(target)
    begun = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - begun
    after = await _used(target)
    if before is not None and after is not None:
        cost.grown = after - before


async def _used(target: Target) -> int | None:
    """Return the memory that a Redis uses; None: the target does not tell."""
    if not isinstance(target, RedisStore):
        return None
    try:
        return (await target.facts()).used
    except TargetUnavailable:
        return None  # what comes next learns it too, and tries again
