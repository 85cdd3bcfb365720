"""Backtests: the hit ratios that policies would have had on a trace, and what that says to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import numpy as np

from warmup_lib.errors import InputDataError
from warmup_lib.forecast.advice import advice, described
from warmup_lib.forecast.caches import belady, lfu, lru, weighted
from warmup_lib.forecast.experts import NATURAL, Choice, Field, all_experts
from warmup_lib.forecast.reserve import Outcome, follow_the_best
from warmup_lib.forecast.sets import lru_cold, static_sets
from warmup_lib.forecast.trace import Flags, Periods, Trace, periods_of
from warmup_lib.stage import Progress, silent

POLICIES = (
    "lru_cold",
    "lru",
    "lfu",
    "static_last",
    "static_all",
    "ours",
    "static_hindsight",
    "belady",
)
"""In the order of reports. The last two look ahead: no cache can do what they do."""

EARLY = {"5m": 5, "15m": 15, "60m": 60}
"""Windows from a period's beginning, minutes."""

_SEASONS = {"day": timedelta(days=1), "week": timedelta(days=7)}


@dataclass(frozen=True)
class Backtest:
    """What policies would have done on a trace.

    Attributes:
        trace: The trace.
        periods: Its periods.
        capacity: Items that a cache holds.
        hits: Whether each access found its item, by policy.
        field: The experts that `ours` chose from.
        outcome: What `ours` did, and would do next.
    """

    trace: Trace
    periods: Periods
    capacity: int
    hits: Mapping[str, Flags]
    field: Field
    outcome: Outcome

    def facts(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        plan = advice(self.field, self.outcome, self.trace, self.periods, self.capacity)
        return {
            "trace": {
                "accesses": self.trace.accesses,
                "items": self.trace.items,
                "rows_read": self.trace.rows_read,
                "rows_rejected": dict(self.trace.rejected),
                "from": _iso(int(self.trace.at[0])),
                "to": _iso(int(self.trace.at[-1])),
                "periods": len(self.periods),
                "period_seconds": self.periods.length / 1e6,
            },
            "capacity": self.capacity,
            "policies": {name: self._figures(name) for name in POLICIES},
            "chosen_policy": "ours" if plan["items"] else plan["natural"],
            "plan": plan,
            "periods": self._choices(),
        }

    def _figures(self, name: str) -> dict[str, Any]:
        hits = self.hits[name]
        return {
            "hit_ratio": float(hits.mean()),
            "early_hit_ratio": {
                window: self._early(hits, minutes) for window, minutes in EARLY.items()
            },
            "byte_hit_ratio": weighted(hits, self.trace.size_bytes),
            "cost_hit_ratio": weighted(hits, self.trace.cost_ms),
        }

    def _early(self, hits: Flags, minutes: int) -> float | None:
        of_each = np.repeat(self.periods.begins_at, np.diff(self.periods.start))
        early = self.trace.at - of_each < minutes * 60_000_000
        return float(hits[early].mean()) if early.any() else None

    def _choices(self) -> list[dict[str, Any]]:
        """Return by period what was followed from when on, and what it hit."""
        slices = self.field.slices
        starts = [int(slices[one.slice]) for one in self.outcome.followed]
        rows = []
        for place, (begin, end) in enumerate(self.periods.spans()):
            before = max(i for i, start in enumerate(starts) if start <= begin)
            inside = [i for i, start in enumerate(starts) if begin < start < end]
            rows.append(
                {
                    "begins": _iso(int(self.periods.begins_at[place])),
                    "accesses": end - begin,
                    "hit_ratio": float(self.hits["ours"][begin:end].mean()),
                    **described(self.outcome.followed[before].expert),
                    "changes": [
                        {
                            "at": _iso(int(self.trace.at[starts[i]])),
                            **described(self.outcome.followed[i].expert),
                        }
                        for i in inside
                    ],
                }
            )
        return rows


def backtest(
    trace: Trace,
    capacity: int,
    period: timedelta,
    zone: tzinfo = UTC,
    natural: Sequence[str] = NATURAL,
    renewed: bool = True,
    progress: Progress = silent,
) -> Backtest:
    """Run all policies over a trace, from an empty cache on.

    `lru_cold`: LRU emptied when a period begins. `lru`, `lfu`: as in libCacheSim. `static_last`,
    `static_all`, `static_hindsight`: one set of items through a period, those asked for most in
    the last period, in all before, in the very one. `ours`: see `follow_the_best`. `belady`: the
    best that a cache can do that loads on misses only, knowing what comes.

    Args:
        trace: The accesses.
        capacity: Items that a cache holds.
        period: How often a plan is made.
        zone: Whose midnight periods are counted from.
        natural: Policies that the cache can have by itself, of `NATURAL`.
        renewed: Whether `ours` may renew its plan with every request, or only when a period begins.
        progress: Told how far it is.

    Raises:
        InputDataError: The capacity or the period is not above zero, or no policy is given.
    """
    if capacity < 1:
        raise InputDataError("a cache must hold at least one item")
    if not set(natural) & set(NATURAL):
        raise InputDataError(f"a cache has one of the policies {', '.join(NATURAL)}")
    item = trace.item
    periods = periods_of(trace.at, period, zone)
    choice = Choice(natural, renewed, _seasons(period))
    field = all_experts(trace.at, item, periods, capacity, choice, progress)
    outcome = follow_the_best(field, item, capacity)
    hits = {
        name: (
            field.simulated[name, capacity]
            if (name, capacity) in field.simulated
            else simulate(item.tolist(), capacity)
        ).hits
        for name, simulate in (("lru", lru), ("lfu", lfu))
    }
    hits |= static_sets(item, periods, capacity)
    hits["lru_cold"] = lru_cold(item, periods, capacity)
    hits["belady"] = belady(item, capacity)
    hits["ours"] = outcome.hits
    return Backtest(trace, periods, capacity, hits, field, outcome)


def _seasons(period: timedelta) -> dict[str, int]:
    """Return the seasons that are whole numbers of periods, at least two."""
    return {
        name: length // period
        for name, length in _SEASONS.items()
        if not length % period and length // period > 1
    }


def _iso(micros: int) -> str:
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
    return at.isoformat().replace("+00:00", "Z")
