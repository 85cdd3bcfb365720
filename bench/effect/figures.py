"""Figures that are computed from measured times alone: percentiles, rates at an SLO, their search.

Nothing here reads a clock, a file or a host.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

SHARE_IN_TIME = 0.95
"""A rate is sustained where this share of the requests offered had its first token in time."""

FINEST = 1.5
"""The search ends where the rate that holds and the one that does not are closer than this."""


@dataclass(frozen=True)
class Spread:
    """How long first tokens took.

    Attributes:
        n: Requests.
        p50: Median, in ms.
        p95: 95th percentile, in ms.
        p99: 99th percentile, in ms.
    """

    n: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class Step:
    """One rate that was offered.

    Attributes:
        rate: Requests offered a second.
        first_ms: Time from the moment each was due to its first token; None: none came in time.
    """

    rate: float
    first_ms: Sequence[float | None]

    def holds(self, limit_ms: float) -> bool:
        """Say whether enough of what was offered had its first token within the limit."""
        return in_time(self.first_ms, limit_ms) >= SHARE_IN_TIME


def spread(values: Iterable[float]) -> Spread:
    """Return the percentiles of times in ms (linear between neighbours).

    Raises:
        ValueError: There is none.
    """
    taken = np.fromiter(values, dtype=np.float64)
    if not taken.size:
        raise ValueError("no time was measured")
    p50, p95, p99 = np.percentile(taken, [50, 95, 99])
    return Spread(int(taken.size), float(p50), float(p95), float(p99))


def reduction(cold: float, warm: float) -> float:
    """Return by which share of the cold time the warm one is lower; negative: it is higher."""
    return 1 - warm / cold


def in_time(first_ms: Sequence[float | None], limit_ms: float) -> float:
    """Return the share of requests with a first token within the limit."""
    return sum(t is not None and t <= limit_ms for t in first_ms) / len(first_ms)


def lost(first_ms: Iterable[float | None], offered: int, limit_ms: float) -> bool:
    """Say whether a step can't hold any more, whatever its other requests do.

    Args:
        first_ms: Of the requests that have ended.
        offered: Requests of the step.
        limit_ms: The limit.
    """
    late = sum(t is None or t > limit_ms for t in first_ms)
    return (offered - late) / offered < SHARE_IN_TIME


def sustained(steps: Sequence[Step], limit_ms: float) -> float | None:
    """Return the highest rate that holds with all lower ones that were tried; None: not one."""
    best = None
    for step in sorted(steps, key=lambda s: s.rate):
        if not step.holds(limit_ms):
            break
        best = step.rate
    return best


def next_rate(
    steps: Sequence[Step], limits: Sequence[float], begin: float, least: float, most: float
) -> float | None:
    """Return the rate to try next; None: every limit's rate is known closely enough.

    Rates double while they hold and halve while none does; then the gap is halved on a log scale.

    Args:
        steps: What was tried.
        limits: Limits in ms for each of which the rate is sought, in order.
        begin: The first rate.
        least: No rate below it is tried.
        most: No rate above it is tried.
    """
    if not steps:
        return begin
    for limit in limits:
        if (rate := _closer(steps, limit, least, most)) is not None:
            return rate
    return None


def _closer(steps: Sequence[Step], limit: float, least: float, most: float) -> float | None:
    tried = sorted(step.rate for step in steps)
    low = sustained(steps, limit)
    if low is None:
        lower = tried[0] / 2
        return lower if lower >= least else None
    above = [rate for rate in tried if rate > low]
    if not above:
        higher = low * 2
        return higher if higher <= most else None
    return math.sqrt(low * above[0]) if above[0] / low > FINEST else None


def times_more(cold: float | None, warm: float | None, least: float) -> str:
    """Return how many times the warm rate is the cold one, in words where a bound is all there is.

    Args:
        cold: Rate that the cold stack sustains; None: not even `least`.
        warm: The same of the warm stack.
        least: The lowest rate that was tried.
    """
    if warm is None:
        return "-"
    return f"{warm / cold:.1f}" if cold else f"> {warm / least:.1f}"
