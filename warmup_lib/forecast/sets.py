"""The plain sets of items that a period is served from: what was asked for most, and when."""

from __future__ import annotations

import numpy as np

from warmup_lib.forecast.caches import lru
from warmup_lib.forecast.family import top
from warmup_lib.forecast.trace import Flags, Ints, Periods, Reals


def static_sets(item: Ints, periods: Periods, capacity: int) -> dict[str, Flags]:
    """Return the hits of caches that hold one set through a period and take nothing in.

    `static_last`: the items asked for most in the last period that had accesses; nothing in the
    first. `static_all`: those asked for most in all periods before. `static_hindsight`: those asked
    for most in the very period, the best any such set can do. Of equals the one asked for latest.

    Args:
        item: Items asked for; shape (n,).
        periods: The periods.
        capacity: Items that a set holds.
    """
    items = int(item.max()) + 1
    hits = {name: np.zeros(len(item), bool) for name in ("last", "all", "hindsight")}
    last = np.full(items, -1, np.int64)
    before: Reals = np.zeros(items)
    known = {"last": before, "all": before}
    for begin, end in periods.spans():
        asked = item[begin:end]
        counts = np.bincount(asked, minlength=items).astype(np.float64)
        for name, basis in (*known.items(), ("hindsight", counts)):
            chosen = np.zeros(items, bool)
            chosen[top(basis, last, capacity)] = True
            hits[name][begin:end] = chosen[asked]
        known = {"last": counts, "all": known["all"] + counts}
        last[asked] = np.arange(begin, end)
    return {f"static_{name}": flags for name, flags in hits.items()}


def lru_cold(item: Ints, periods: Periods, capacity: int) -> Flags:
    """Return the hits of an LRU cache that is emptied when a period begins."""
    items = item.tolist()
    return np.concatenate([lru(items[a:b], capacity).hits for a, b in periods.spans()])
