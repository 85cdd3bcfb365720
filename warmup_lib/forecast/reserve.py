"""The reserve: which expert a cache follows when, chosen by what each would have hit so far."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from warmup_lib.forecast.caches import NOBODY, Simulated
from warmup_lib.forecast.experts import Expert, Field
from warmup_lib.forecast.family import ALL, LAST
from warmup_lib.forecast.trace import Flags, Ints

_MEMORIES = (np.inf, 8.0, 2.0)
"""Of the selectors: periods after which what an expert has hit counts half."""

_COST = 0.3
"""Part of the items an expert holds and the cache does not that are taken to be missed once."""

_LITTLE = 0.05
"""Part of the first period's accesses: where no expert has hit more there is little to lose."""

_TIE = 0.25
"""Square roots of a count of hits, its standard errors, by which a fixed plan must be ahead."""


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


class _Course:
    """What all experts hold as time goes on, and what it takes to change from one to another."""

    def __init__(self, field: Field, cache: _Cache) -> None:
        self._field = field
        self._cache = cache
        self._place = 0
        self._period_of = np.cumsum([one.at >= 1 for one in field.intervals])
        self._period = 0
        self.planning = True

    def reach(self, place: int) -> None:
        """Come to the beginning of a slice."""
        of = self._field.interval_of
        self.planning = place == 0 or of[place] != of[place - 1]
        self._period = int(self._period_of[of[place]])
        self._place = place

    def begins(self, period: int) -> bool:
        """Say whether the period of this number, of those with accesses, begins; first: 0."""
        return self.planning and self._period == period

    @property
    def has_plans(self) -> bool:
        """Whether there was anything to plan from."""
        return bool(self._field.intervals[int(self._field.interval_of[self._place])].plans)

    def held(self, expert: Expert) -> tuple[Ints, Ints]:
        """Return what an expert has pinned, and what else it holds."""
        place, capacity = self._place, self._cache.capacity
        begin = int(self._field.slices[place])
        others = self._field.simulated[expert.simulated(capacity)].held(self._cache.last, begin)
        plans = self._field.intervals[int(self._field.interval_of[place])].plans
        pinned = np.empty(0, np.int64)
        if expert.estimator is not None and expert.estimator in plans:
            pinned = plans[expert.estimator][: expert.reserved(capacity)]
        return pinned, others

    def loaded(self, expert: Expert) -> Ints:
        """Return what is loaded for an expert now."""
        pinned, others = self.held(expert)
        return (others if expert.renewed else pinned) if self.planning else pinned[:0]

    def cost(self, old: Expert, new: Expert, proven: bool) -> float:
        """Return the hits that a change is taken to cost.

        Items have to come in. And between plans, what is planned and was not asked for since is
        still to come, if the old expert has proven itself, that is, has hit anything yet: each such
        item that the new one does not hold is a hit given up.
        """
        pinned, others = self.held(old)
        wanted = np.concatenate(self.held(new))
        lacking = np.setdiff1d(np.setdiff1d(wanted, np.append(pinned, others)), self.loaded(new))
        due = self._due(pinned) if proven and not self.planning else pinned[:0]
        return _COST * len(lacking) + len(np.setdiff1d(due, wanted))

    def _due(self, pinned: Ints) -> Ints:
        planned_at = self._field.intervals[int(self._field.interval_of[self._place])].begin
        return pinned[self._cache.last[pinned] < planned_at]

    def worth_it(self, lead: float, old: Expert, new: Expert, proven: bool) -> bool:
        """Say whether a change to an expert that is ahead by so many hits is worth its cost."""
        return lead > 0 and (self.planning or old == new or lead > self.cost(old, new, proven))


class _Selector:
    """Follows the expert that has hit most, as far as it remembers; notes what that brought."""

    def __init__(self, memory: float, experts: list[Expert], course: _Course) -> None:
        self._memory = memory
        self._experts = experts
        self._course = course
        self._hits = np.zeros(len(experts))
        self._last, self._all = (
            next(i for i, one in enumerate(experts) if one.estimator == name and one.share == 1)
            for name in (LAST, ALL)
        )
        self._current = 0
        self.record = 0.0

    @property
    def expert(self) -> Expert:
        """The expert followed."""
        return self._experts[self._current]

    def look(self, seen: int) -> None:
        """Follow the best expert where that is worth what the change costs.

        As long as none has hit anything a plan can only win: what was asked for last. Where little
        was hit in the first period, the second begins with a plan of all of the first.

        Args:
            seen: Accesses so far.
        """
        if self._course.begins(2):
            self._equate()
        if not self._hits.any():
            self._current = self._last if self._course.has_plans else 0
            return
        if self._course.begins(1) and self._hits.max() <= _LITTLE * seen:
            self._current = self._all
            return
        best = self._best()
        so_far = float(self._hits[self._current])
        change = self.expert, self._experts[best], so_far > 0
        if self._course.worth_it(float(self._hits[best]) - so_far, *change):
            self.record -= self._course.cost(*change)
            self._current = best

    def _equate(self) -> None:
        """Take a plan of the last period to have hit what one of all history has.

        In the second period the last one is all there is. What was planned as the last period then
        was the last part of the first.
        """
        self._hits[self._last] = self._hits[[self._last, self._all]].max()
        if self._current == self._all:
            self._current = self._last

    def _best(self) -> int:
        """Return the expert with most hits; of fixed plans as good as equal, the last period's.

        Where all items are replaced in one go, it is the first to know the new ones.
        """
        best = int(np.argmax(self._hits))
        most = float(self._hits[best])
        tied = most - float(self._hits[self._last]) <= _TIE * most**0.5
        return self._last if tied and self._experts[best].fixed else best

    def learn(self, gains: Ints, elapsed: float) -> None:
        """Take in what each expert hit in a slice, so many periods after the one before."""
        self.record += float(gains[self._current])
        self._hits = self._hits * 0.5 ** (elapsed / self._memory) + gains


def follow_the_best(field: Field, item: Ints, capacity: int) -> Outcome:
    """Run one cache through a trace that follows, looking back only, the best expert so far.

    Selectors follow the expert with most hits, each with a memory of its own: one that forgets
    nothing is right where demand stays as it is, one of two periods where it changes. The cache
    follows the selector that has done best. Each slice ends with a look at what every expert would
    have hit in it. When a plan is made the items it plans are loaded; between plans another expert
    is followed only where it is ahead by more than the change costs.

    Args:
        field: The experts.
        item: Items asked for; shape (n,).
        capacity: Items that the cache holds.
    """
    cache = _Cache(capacity, int(item.max()) + 1)
    course = _Course(field, cache)
    selectors = [_Selector(memory, field.experts, course) for memory in _MEMORIES]
    leader = selectors[0]
    hits = bytearray(len(item))
    followed: list[Followed] = []
    expert = None
    for place, begin in enumerate(field.slices[:-1].tolist()):
        course.reach(place)
        for one in selectors:
            one.look(begin)
        best = max(selectors, key=lambda one: one.record)
        if course.worth_it(best.record - leader.record, leader.expert, best.expert, True):
            leader = best
        if leader.expert != expert:
            followed.append(Followed(place, leader.expert))
        if leader.expert != expert or (course.planning and leader.expert.share):
            cache.follow(*course.held(leader.expert), course.loaded(leader.expert))
        expert = leader.expert
        asked = item[begin : int(field.slices[place + 1])]
        cache.serve(begin, asked, field.simulated[expert.simulated(capacity)], hits)
        for one in selectors:
            one.learn(field.gains[:, place], float(field.elapsed[place]))
    return Outcome(np.frombuffer(hits, np.bool_), followed, leader.expert)
