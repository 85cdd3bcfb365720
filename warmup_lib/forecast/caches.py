"""Simulated caches of N items: what each access finds, and what it drives out."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace
from itertools import pairwise

import numpy as np

from warmup_lib.forecast.trace import Flags, Ints, Places, Reals

NOBODY = -1
"""Victim of an access that drives nothing out."""

_STRETCH = 400.0
"""Half lives after which heat is scaled down, so that it stays within a float's range."""


@dataclass
class Simulated:
    """What a cache did.

    Attributes:
        hits: Whether each access found its item; shape (n,).
        victims: The item that each access drove out, `NOBODY`, or the item asked for itself where
            the cache did not take it in; shape (n,).
    """

    hits: Flags
    victims: Places
    _gone: Ints | None = field(default=None, init=False, repr=False)
    _until: int = field(default=0, init=False, repr=False)

    def held(self, last: Ints, until: int) -> Ints:
        """Return what the cache holds before access `until`; to be asked in the order of time.

        Args:
            last: Index of each item's last access before that, -1 for none; shape (items,).
            until: Index of an access.
        """
        if self._gone is None:
            self._gone = np.full(len(last), -1, np.int64)
        fresh = self.victims[self._until : until]
        at = np.flatnonzero(fresh != NOBODY)
        self._gone[fresh[at]] = at + self._until
        self._until = until
        return np.flatnonzero(last > self._gone)


def nothing(item: Ints) -> Simulated:
    """Return what a cache without room does."""
    return Simulated(np.zeros(len(item), bool), item.astype(np.int32))


def lru(items: Sequence[int], capacity: int) -> Simulated:
    """Drive out what was asked for longest ago."""
    hits, victims, room = *_blank(items), capacity
    held: OrderedDict[int, None] = OrderedDict()
    renew, oldest = held.move_to_end, held.popitem
    for i, x in enumerate(items):
        if x in held:
            renew(x)
            hits[i] = 1
            continue
        held[x] = None
        if room:
            room -= 1
        else:
            victims[i] = oldest(last=False)[0]
    return _done(hits, victims)


def lfu(items: Sequence[int], capacity: int) -> Simulated:
    """Drive out what was asked for least often since it came in, of equals the longest so.

    Counts begin anew when an item comes back, as in libCacheSim's LFU.
    """
    hits, victims, room = *_blank(items), capacity
    count: dict[int, int] = {}
    first: OrderedDict[int, None] = OrderedDict()
    by_count = {1: first}
    least = 1
    for i, x in enumerate(items):
        seen = count.get(x)
        if seen is not None:
            hits[i] = 1
            of_count = by_count[seen]
            del of_count[x]
            if not of_count and seen == least:
                least += 1
            count[x] = seen + 1
            by_count.setdefault(seen + 1, OrderedDict())[x] = None
            continue
        if room:
            room -= 1
        else:
            gone = by_count[least].popitem(last=False)[0]
            del count[gone]
            victims[i] = gone
        count[x] = least = 1
        first[x] = None
    return _done(hits, victims)


def hottest(half_life: float, at: Ints) -> Callable[[Sequence[int], int], Simulated]:
    """Return a cache that holds what has most heat: requests that halve in worth every half life.

    Heat is remembered of all items, held or not. An item comes in when its heat passes the least
    held; equals stay.

    Args:
        half_life: Age at which a request counts half, microseconds; infinite: none ages.
        at: When each access is made, microseconds, ascending; shape (n,).
    """
    exponent = (at - at[0]) / half_life
    stretch = np.floor(exponent / _STRETCH)
    worth: list[float] = np.exp2(exponent - stretch * _STRETCH).tolist()
    starts = np.flatnonzero(np.diff(stretch, prepend=0.0)).tolist()
    fades = {i: float(np.exp2(_STRETCH * (stretch[i - 1] - stretch[i]))) for i in starts}

    def simulate(items: Sequence[int], capacity: int) -> Simulated:
        hits, victims, room = *_blank(items), capacity
        heat = [0.0] * (max(items) + 1)
        held = bytearray(len(heat))
        # What is pushed of a held item is a heat it had: never more than it has now.
        coldest: list[tuple[float, int]] = []
        for begin, end in pairwise([0, *starts, len(items)]):
            fade = fades.get(begin, 1.0)
            heat = [own * fade for own in heat]
            coldest = [(known * fade, y) for known, y in coldest]
            for i in range(begin, end):
                x = items[i]
                own = heat[x] = heat[x] + worth[i]
                if held[x]:
                    hits[i] = 1
                elif room:
                    room -= 1
                    held[x] = 1
                    heappush(coldest, (own, x))
                else:
                    known, y = coldest[0]
                    while known != heat[y]:
                        heapreplace(coldest, (heat[y], y))
                        known, y = coldest[0]
                    victims[i] = x
                    if own > known:
                        heapreplace(coldest, (own, x))
                        held[y], held[x] = 0, 1
                        victims[i] = y
        return _done(hits, victims)

    return simulate


def belady(item: Ints, capacity: int) -> Flags:
    """Return the hits of a cache that drives out what will be asked for last.

    It takes in on a miss only, and always: no cache that loads nothing beforehand has more hits.
    """
    items, n = item.tolist(), len(item)
    hits = bytearray(n)
    held: set[int] = set()
    # A next use that has passed is smaller than any to come, so it never surfaces.
    farthest: list[int] = []
    for i, (x, following) in enumerate(zip(items, _next_uses(item).tolist(), strict=True)):
        if x in held:
            hits[i] = 1
        else:
            if len(held) == capacity:
                use = -heappop(farthest)
                held.discard(items[use % n])
            held.add(x)
        heappush(farthest, -following)
    return np.frombuffer(hits, np.bool_)


def _next_uses(item: Ints) -> Ints:
    """Return the index of each access's next one of the same item; n + its own where none is."""
    n = len(item)
    order = np.argsort(item, kind="stable")
    same = item[order][1:] == item[order][:-1]
    following: Ints = np.arange(n, 2 * n)
    following[order[:-1][same]] = order[1:][same]
    return following


def _blank(items: Sequence[int]) -> tuple[bytearray, array[int]]:
    return bytearray(len(items)), array("i", [NOBODY]) * len(items)


def _done(hits: bytearray, victims: array[int]) -> Simulated:
    return Simulated(np.frombuffer(hits, np.bool_), np.frombuffer(victims, np.int32))


def weighted(hits: Flags, weight: Reals | None) -> float:
    """Return the share of hits, each access counted by its weight."""
    if weight is None:
        return float(hits.mean())
    total = float(weight.sum())
    return float(weight[hits].sum()) / total if total else 0.0
