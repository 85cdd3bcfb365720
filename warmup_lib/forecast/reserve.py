"""The reserve: which expert a cache follows when, chosen by what each would have hit so far."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from warmup_lib.forecast.caches import NOBODY, Simulated
from warmup_lib.forecast.experts import SLICES, Expert, Field
from warmup_lib.forecast.trace import Flags, Ints, Reals

_RECENT = 0.5 ** (1 / (2 * SLICES))
"""What a slice keeps of its worth when the next one ends: half after two periods."""

_COST = 0.3
"""Part of the items an expert holds and the cache does not that are taken to be missed once."""


@dataclass(frozen=True)
class Followed:
    """An expert, and from which slice on it was followed."""

    slice: int
    expert: Expert


@dataclass(frozen=True)
class Outcome:
    """What a cache that follows the best expert so far did.

    Attributes:
        hits: Whether each access found its item; shape (n,).
        followed: The experts followed, in the order of time.
        coming: The expert for the period after the last access.
    """

    hits: Flags
    followed: list[Followed]
    coming: Expert


class _Record:
    """What each expert has hit so far, and which is to be followed."""

    def __init__(self, experts: list[Expert]) -> None:
        self._adapts = np.array([one.renewed or not one.share for one in experts])
        self._so_far = np.zeros(len(experts))
        self._of_late = np.zeros(len(experts))

    def add(self, gains: Ints) -> None:
        self._so_far += gains
        self._of_late = self._of_late * _RECENT + gains

    def best(self) -> int:
        """Return the expert with the most hits so far.

        One with a fixed plan must be ahead of all others in the last periods, too: it pays only as
        long as the demand it was planned from goes on.
        """
        return int(np.argmax(np.where(self._trusted(), self._so_far, -1.0)))

    def lead(self, better: int, than: int) -> float:
        """Return by how many hits one expert is ahead of another, as far as both count."""
        counts: Reals = self._so_far if self._trusted()[than] else self._of_late
        return float(counts[better] - counts[than])

    def _trusted(self) -> Flags:
        ahead = self._of_late > self._of_late[self._adapts].max()
        trusted: Flags = self._adapts | ahead
        return trusted


class _Cache:
    """A real cache that takes over what an expert's cache holds as it is asked for.

    It drives out what the expert does not hold, the longest gone first. Only planned items are
    loaded, when a plan is made; all else comes in on a miss.
    """

    def __init__(self, capacity: int, items: int) -> None:
        self.capacity = capacity
        self.last = np.full(items, -1, np.int64)
        self._wanted: set[int] = set()
        self._pinned: frozenset[int] = frozenset()
        self._other: OrderedDict[int, None] = OrderedDict()

    def lacks(self, wanted: set[int]) -> int:
        """Return how many of these items are not held."""
        return len(wanted - self._wanted - self._other.keys())

    def follow(self, pinned: Ints, others: Ints, load: Ints) -> None:
        """Take other items to be worth holding.

        Args:
            pinned: Those that stay until the next call.
            others: Those held until the expert drives them out.
            load: Those of both to load now.
        """
        self._pinned = frozenset(pinned.tolist())
        wanted = self._pinned.union(others.tolist())
        held = self._wanted.union(self._other)
        leftover = sorted(held - wanted, key=self.last.__getitem__)
        self._other = OrderedDict.fromkeys(leftover)
        self._wanted = held & wanted
        for x in load.tolist():
            if x not in self._wanted:
                self._make_room()
                self._wanted.add(x)

    def serve(self, begin: int, asked: Ints, expert: Simulated, hits: bytearray) -> None:
        """Serve accesses; note hits and when items were last asked for."""
        end = begin + len(asked)
        wanted, other = self._wanted, self._other
        rows = zip(
            range(begin, end),
            asked.tolist(),
            expert.hits[begin:end].tolist(),
            expert.victims[begin:end].tolist(),
            strict=True,
        )
        for i, x, expert_hit, victim in rows:
            if not expert_hit and victim == x and x not in self._pinned:
                hits[i] = x in other
                if not hits[i] and len(wanted) + len(other) < self.capacity:
                    other[x] = None
                continue
            if not expert_hit and victim != NOBODY:
                self._give_up(victim)
            if x in wanted:
                hits[i] = 1
                continue
            if x in other:
                hits[i] = 1
                del other[x]
            else:
                self._make_room()
            wanted.add(x)
        self.last[asked] = np.arange(begin, end)

    def _give_up(self, x: int) -> None:
        if x in self._wanted and x not in self._pinned:
            self._wanted.discard(x)
            self._other[x] = None

    def _make_room(self) -> None:
        if len(self._wanted) + len(self._other) >= self.capacity:
            self._other.popitem(last=False)


def follow_the_best(field: Field, item: Ints, capacity: int) -> Outcome:
    """Run one cache through a trace that follows, looking back only, the best expert so far.

    Each slice ends with a look at what every expert would have hit until then. When a plan is made
    the best is followed and its planned items are loaded. Between plans another is followed only
    where it is ahead by more than what is lost until the cache holds what it holds.

    Args:
        field: The experts.
        item: Items asked for; shape (n,).
        capacity: Items that the cache holds.
    """
    record = _Record(field.experts)
    cache = _Cache(capacity, int(item.max()) + 1)
    hits = bytearray(len(item))
    followed: list[Followed] = []
    current, interval = 0, -1
    for place, begin in enumerate(field.slices[:-1].tolist()):
        planning = int(field.interval_of[place]) != interval
        interval = int(field.interval_of[place])
        best = record.best()
        chosen = current
        if best != current and (planning or _worth_it(field, cache, record, current, best, place)):
            chosen = best
        expert = field.experts[chosen]
        if chosen != current or not place:
            followed.append(Followed(place, expert))
        if chosen != current or (planning and expert.share):
            pinned, others = _held(field, cache, expert, place)
            load = others if expert.renewed else pinned
            cache.follow(pinned, others, load if planning else load[:0])
        current = chosen
        asked = item[begin : int(field.slices[place + 1])]
        cache.serve(begin, asked, field.simulated[expert.simulated(capacity)], hits)
        record.add(field.gains[:, place])
    return Outcome(np.frombuffer(hits, np.bool_), followed, field.experts[record.best()])


def _worth_it(
    field: Field, cache: _Cache, record: _Record, current: int, best: int, place: int
) -> bool:
    lead = record.lead(best, current)
    if lead <= 0:
        return False
    pinned, others = _held(field, cache, field.experts[best], place)
    return lead > _COST * cache.lacks({*pinned.tolist(), *others.tolist()})


def _held(field: Field, cache: _Cache, expert: Expert, place: int) -> tuple[Ints, Ints]:
    """Return what an expert has pinned when a slice begins, and what else it holds."""
    begin = int(field.slices[place])
    held = field.simulated[expert.simulated(cache.capacity)].held(cache.last, begin)
    nobody = np.empty(0, np.int64)
    plans = field.intervals[int(field.interval_of[place])].plans
    pinned = plans.get(expert.estimator or "", nobody)
    return pinned[: expert.reserved(cache.capacity)], held
