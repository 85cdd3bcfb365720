"""What a backtest says to do next: which way to run the cache, and whether to warm at all."""

from __future__ import annotations

from typing import Any

import numpy as np

from warmup_lib.forecast.caches import Simulated
from warmup_lib.forecast.experts import Expert, Field
from warmup_lib.forecast.reserve import Outcome
from warmup_lib.forecast.trace import Ints, Periods, Trace

_KINDS = ("no plan", "fixed plan", "renewed plan")


def described(expert: Expert) -> dict[str, Any]:
    """Return an expert as plain values."""
    return {
        "reserve": expert.share,
        "estimator": expert.estimator,
        "renewed": expert.renewed,
        "natural": expert.natural,
    }


def advice(
    field: Field, outcome: Outcome, trace: Trace, periods: Periods, capacity: int
) -> dict[str, Any]:
    """Return the plan for the period after a trace, as plain values.

    Returns:
        The expert to follow; `items`, how many to warm; `asked_for`, the share of past requests
        that were for what it would have planned when their period began; `ways`, the best without
        plan, with fixed and with renewed plan, with the hit ratio each would have had; `says`, all
        of it in a sentence.
    """
    coming = outcome.coming
    planned, asked_for = _planned(field, coming, trace, periods, capacity)
    ratios = field.gains.sum(axis=1) / trace.accesses
    ways = {}
    for kind in _KINDS:
        rows = [i for i, one in enumerate(field.experts) if _kind(one) == kind]
        if rows:
            best = max(rows, key=lambda row: float(ratios[row]))
            ways[kind] = {**described(field.experts[best]), "hit_ratio": float(ratios[best])}
    if not asked_for:
        # The plan never met a request: what it was ahead by, the cache has by itself.
        coming = next(one for one in field.experts if described(one) == _without(ways))
    items = planned if asked_for else 0
    return {
        **described(coming),
        "items": items,
        "asked_for": asked_for,
        "ways": ways,
        "says": _says(coming, items, ways, trace, periods),
    }


def _kind(expert: Expert) -> str:
    return _KINDS[2 if expert.renewed else bool(expert.share)]


def _without(ways: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in ways["no plan"].items() if name != "hit_ratio"}


def _planned(
    field: Field, expert: Expert, trace: Trace, periods: Periods, capacity: int
) -> tuple[int, float]:
    """Return how many items are planned, and what share of past requests such plans met."""
    if not expert.share:
        return 0, 0.0
    reserved = expert.reserved(capacity)
    at_start = {one.begin: one.plans for one in field.intervals}
    done = field.simulated[expert.simulated(capacity)]
    cache = Simulated(done.hits, done.victims)
    last = np.full(trace.items, -1, np.int64)
    met = 0
    for place, (begin, end) in enumerate(periods.spans()):
        asked = trace.item[begin:end]
        if place:
            plan: Ints = (
                cache.held(last, begin)
                if expert.renewed
                else at_start[begin][str(expert.estimator)][:reserved]
            )
            met += int(np.isin(asked, plan).sum())
        last[asked] = np.arange(begin, end)
    plan = (
        cache.held(last, trace.accesses)
        if expert.renewed
        else field.next_plans[str(expert.estimator)][:reserved]
    )
    later = trace.accesses - int(periods.start[1])
    return len(plan), met / later if later else 0.0


def _says(coming: Expert, items: int, ways: dict[str, Any], trace: Trace, periods: Periods) -> str:
    if not items:
        return f"Do not warm: {_why_not(ways, trace, periods)}."
    if coming.renewed:
        half_life = float(str(coming.estimator).removeprefix("heat ")) * periods.length / 1e6
        ages = f"halves in {_span(half_life)}" if half_life < np.inf else "does not age"
        return (
            f"Warm the {items:,} items with most heat, which {ages}, and renew the plan as "
            "requests come."
        )
    rest = f", and leave the rest to {coming.natural}" if coming.natural else ""
    return (
        f"Warm the {items:,} items that '{coming.estimator}' expects most, {coming.share:.0%} of "
        f"the cache{rest}."
    )


def _span(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _why_not(ways: dict[str, Any], trace: Trace, periods: Periods) -> str:
    if not _comes_back(trace.item, periods):
        return "no item was asked for in more than one period"
    best = max(way["hit_ratio"] for kind, way in ways.items() if kind != "no plan")
    behind = 100 * (ways["no plan"]["hit_ratio"] - best)
    if behind > 0:
        return f"the best plan would have hit {behind:.1f} points less than the cache by itself"
    return "what plans were ahead by was not enough, or not in the last periods"


def _comes_back(item: Ints, periods: Periods) -> bool:
    """Say whether any item was asked for in more than one period."""
    period = np.repeat(np.arange(len(periods)), np.diff(periods.start))
    first = np.full(int(item.max()) + 1, len(periods))
    np.minimum.at(first, item, period)
    return bool(np.any(period > first[item]))
