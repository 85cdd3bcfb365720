"""The ways to run a cache that a reserve is chosen from, and what each would have hit when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import numpy as np

from warmup_lib.forecast.caches import Simulated, hottest, lfu, lru, nothing
from warmup_lib.forecast.family import Family, top
from warmup_lib.forecast.trace import Ints, Periods, Places, Reals
from warmup_lib.stage import Progress

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Shares of a cache that may be reserved for planned items, besides none."""

HEAT_HALF_LIVES = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 16.0, np.inf)
"""Half lives of the heat by which a renewed plan keeps its items, in periods."""

NATURAL = ("lru", "lfu")
"""Policies that a cache may have by itself."""

_SLICES = 12
"""Parts of a period, by time, after each of which what was chosen is looked at again."""

_CROWD = 1000
"""Accesses after which it is looked at again in any case, where the cache holds fewer items."""

_WARM_UP = (0.125, 0.25, 0.5)
"""When plans are made in the first period, as there is nothing to plan from before it: its parts
double, so that each is judged by a time as long as what it was planned from."""

_UNRANKED = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Expert:
    """One way to run a cache.

    Attributes:
        natural: Policy of the part that is not reserved; None where all is.
        share: Part of the capacity that is reserved for planned items; 0: nothing is warmed.
        estimator: Who plans those; None where nothing is reserved.
        renewed: The plan is renewed with every request: the cache holds what has most heat.
    """

    natural: str | None
    share: float = 0.0
    estimator: str | None = None
    renewed: bool = False

    @property
    def fixed(self) -> bool:
        """Whether items are planned that stay until the next plan."""
        return self.share > 0 and not self.renewed

    def reserved(self, capacity: int) -> int:
        """Return how many items are planned."""
        return round(self.share * capacity)

    def simulated(self, capacity: int) -> tuple[str, int]:
        """Return policy and size of what has to be simulated: all that is no fixed plan."""
        if self.renewed:
            return str(self.estimator), capacity
        return self.natural or "", capacity - self.reserved(capacity)


@dataclass(frozen=True)
class Interval:
    """A time between two plans: its accesses, and how each estimator ranked the items before it.

    Attributes:
        begin: Index of its first access.
        end: Index after its last one.
        at: When it begins, in periods since the first.
        plans: Planned items by estimator, best first; empty where there was nothing to plan from.
    """

    begin: int
    end: int
    at: float
    plans: Mapping[str, Ints]


@dataclass
class Field:
    """All experts on one trace.

    Attributes:
        experts: The experts; those that reserve nothing come first.
        intervals: Times between plans.
        slices: Index of the first access of each slice, and the number of accesses.
        elapsed: Time from the first access of the slice before to that of each, in periods; 0 for
            the first; shape (slices,).
        interval_of: Interval of each slice; shape (slices,).
        gains: Hits of each expert in each slice, looking back only; shape (experts, slices). Of a
            cache with a fixed plan: accesses to planned items, or to what its natural part would
            hold if it saw all accesses: never more than it has.
        simulated: What the part that no fixed plan reserves does, by policy and size.
        next_plans: What each estimator would plan after the last access.
    """

    experts: list[Expert]
    intervals: list[Interval]
    slices: Ints
    elapsed: Reals
    interval_of: Ints
    gains: Ints
    simulated: Mapping[tuple[str, int], Simulated]
    next_plans: Mapping[str, Ints]


@dataclass(frozen=True)
class Choice:
    """What there is to choose from.

    Attributes:
        natural: Policies that the cache can have by itself, of `NATURAL`, at least one.
        renewed: Whether plans can be renewed with every request.
        seasons: Lengths of seasons in periods, by name.
    """

    natural: Sequence[str] = NATURAL
    renewed: bool = True
    seasons: Mapping[str, int] = dataclass_field(default_factory=dict)


def all_experts(
    at: Ints,
    item: Ints,
    periods: Periods,
    capacity: int,
    choice: Choice,
    progress: Progress,
) -> Field:
    """Run all experts over a trace.

    Args:
        at: When each access was made, microseconds, ascending; shape (n,).
        item: Items asked for, numbered by first appearance; shape (n,).
        periods: The trace's periods.
        capacity: Items that the cache holds.
        choice: What there is to choose from.
        progress: Told about each simulation.
    """
    family = Family(int(item.max()) + 1, choice.seasons)
    experts = _listed(choice, family.names)
    simulated = _simulated(at, item, periods, capacity, experts, progress)
    intervals, next_plans = _intervals(at, item, periods, capacity, family)
    slices, interval_of = _sliced(at, intervals, periods, capacity)
    elapsed = np.diff(at[slices[:-1]], prepend=at[0]) / periods.length
    gains = np.zeros((len(experts), len(interval_of)), np.int64)
    ranks: dict[str, Places] = {}
    for row, expert in enumerate(experts):
        hits = simulated[expert.simulated(capacity)].hits
        if expert.estimator is not None and not expert.renewed:
            if expert.estimator not in ranks:
                ranks = {expert.estimator: _ranks(item, intervals, expert.estimator)}
            hits = hits | (ranks[expert.estimator] < expert.reserved(capacity))
        gains[row] = np.add.reduceat(hits.astype(np.int64), slices[:-1])
    return Field(experts, intervals, slices, elapsed, interval_of, gains, simulated, next_plans)


def _listed(choice: Choice, estimators: Sequence[str]) -> list[Expert]:
    experts = [Expert(name) for name in NATURAL if name in choice.natural]
    if choice.renewed:
        heats = (f"heat {half_life:g}" for half_life in HEAT_HALF_LIVES)
        experts += [Expert(None, 1.0, name, renewed=True) for name in heats]
    rest = experts[0].natural
    for name in estimators:
        experts += [Expert(rest if share < 1 else None, share, name) for share in SHARES]
    return experts


def _simulated(
    at: Ints,
    item: Ints,
    periods: Periods,
    capacity: int,
    experts: Sequence[Expert],
    progress: Progress,
) -> dict[tuple[str, int], Simulated]:
    policies: dict[str, Callable[[Sequence[int], int], Simulated]] = {"lru": lru, "lfu": lfu}
    for half_life in HEAT_HALF_LIVES:
        policies[f"heat {half_life:g}"] = hottest(half_life * periods.length, at)
    todo = list(dict.fromkeys(expert.simulated(capacity) for expert in experts))
    items = item.tolist()
    found: dict[tuple[str, int], Simulated] = {}
    for done, (name, size) in enumerate(todo):
        progress("caches", done, len(todo))
        found[name, size] = policies[name](items, size) if size else nothing(item)
    progress("caches", len(todo), len(todo))
    return found


def _intervals(
    at: Ints, item: Ints, periods: Periods, capacity: int, family: Family
) -> tuple[list[Interval], dict[str, Ints]]:
    """Return the times between plans, and what would be planned after the last one."""
    spans = [
        (begin, end, float(number), 1.0)
        for (begin, end), number in zip(periods.spans(), periods.number.tolist(), strict=True)
    ]
    first = int(periods.begins_at[0])
    cuts = [0.0, *_WARM_UP, 1.0]
    inner = np.searchsorted(
        at[: spans[0][1]], [first + cut * periods.length for cut in cuts[1:-1]]
    ).tolist()
    bounds = [0, *inner, spans[0][1]]
    spans[:1] = [
        (bounds[i], bounds[i + 1], cuts[i], cuts[i + 1] - cuts[i]) for i in range(len(cuts) - 1)
    ]
    last = np.full(family.items, -1, np.int64)
    found = []
    for begin, end, when, length in spans:
        if begin == end:
            continue
        found.append(Interval(begin, end, when, _plans(family, last, capacity)))
        ids, counts = np.unique(item[begin:end], return_counts=True)
        family.learn(ids, counts, when, length)
        last[item[begin:end]] = np.arange(begin, end)
    return found, _plans(family, last, capacity)


def _plans(family: Family, last: Ints, capacity: int) -> dict[str, Ints]:
    if not family.seen:
        return {}
    return {name: top(family.expected(name), last, capacity) for name in family.names}


def _sliced(
    at: Ints, intervals: list[Interval], periods: Periods, capacity: int
) -> tuple[Ints, Ints]:
    """Return where slices begin, with the number of accesses at the end, and their intervals.

    Where one begins must not depend on any access after it.
    """
    part = (at - int(periods.begins_at[0])) * _SLICES // periods.length
    crowd = np.arange(len(at)) // max(_CROWD, capacity)
    interval_of = np.repeat(np.arange(len(intervals)), [one.end - one.begin for one in intervals])
    begins = np.flatnonzero(
        np.any([np.diff(of, prepend=-1) > 0 for of in (part, crowd, interval_of)], axis=0)
    )
    return np.append(begins, len(at)), interval_of[begins]


def _ranks(item: Ints, intervals: list[Interval], estimator: str) -> Places:
    """Return each access's place in the plan of its time; the largest number where in none."""
    ranks = np.full(len(item), _UNRANKED, np.int32)
    of_item = np.full(int(item.max()) + 1, _UNRANKED, np.int32)
    for one in intervals:
        if estimator in one.plans:
            plan = one.plans[estimator]
            of_item[plan] = np.arange(len(plan))
            ranks[one.begin : one.end] = of_item[item[one.begin : one.end]]
            of_item[plan] = _UNRANKED
    return ranks
