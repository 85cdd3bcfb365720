"""The family of estimators: what each expects of the coming period, from the past ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from warmup_lib.forecast.trace import Ints, Reals

HALF_LIVES = (1.0, 2.0, 4.0, 8.0, 16.0, np.inf)
"""Ages at which a request counts half, in periods."""

LAST = "last period"
ALL = "all history"
_TIE = 1e-7
_FULL = 400.0
_YEARS = 4
_LONG = 4.0


@dataclass
class _Decayed:
    """A sum over past periods in which a period loses half its worth every half life."""

    half_life: float
    worth: Reals
    root: bool = False
    largest: Reals | None = None
    exposure: float = 0.0
    since: float = 0.0

    def learn(self, ids: Ints, counts: Reals, at: float, length: float) -> None:
        grown = (at - self.since) / self.half_life
        if grown > _FULL:
            fade = float(np.exp2(-grown))
            self.worth *= fade
            if self.largest is not None:
                self.largest *= fade
            self.exposure *= fade
            self.since, grown = at, 0.0
        weight = float(np.exp2(grown))
        added = weight * (np.sqrt(counts * length) if self.root else counts)
        self.worth[ids] += added
        if self.largest is not None:
            self.largest[ids] = np.maximum(self.largest[ids], added)
        self.exposure += weight * length

    def expected(self, seen: int) -> Reals:
        worth = self.worth[:seen]
        if self.largest is not None:
            worth = worth - self.largest[:seen] / 2
        rate = worth / self.exposure
        return np.square(rate) if self.root else rate


@dataclass
class Family:
    """Estimators that learn period by period and say what each expects of the next.

    Decayed counts with several half lives (`decay 4`: a period counts half when four more have
    passed), the last period and all history as their ends. Two kinds that trust an item asked for
    in many periods more than one asked for much in one: `damped ...`, in which an item's largest
    period counts half, and `steady ...`, on square roots. Where a season is named and one has
    passed, `... season`: the mean of the same and the neighbouring periods a season ago and of the
    decayed count.

    Args:
        items: Number of items there can be.
        seasons: Length of each season in periods, by its name.
    """

    items: int
    seasons: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seen = 0
        self._last: tuple[Ints, Reals] = (np.empty(0, np.int64), np.empty(0))
        self._length = 1.0
        self._at = 0.0
        self._past: dict[int, list[tuple[Ints, Reals]]] = {}
        self._longest = max(self.seasons.values(), default=0) * _YEARS + 1
        self._numbers: deque[int] = deque()
        self._sums: dict[str, _Decayed] = {}
        for half_life in HALF_LIVES:
            name = "all" if half_life == np.inf else f"{half_life:g}"
            blank = partial(np.zeros, self.items)
            plain = ALL if half_life == np.inf else f"decay {name}"
            self._sums[plain] = _Decayed(half_life, blank())
            if half_life >= _LONG:
                self._sums[f"damped {name}"] = _Decayed(half_life, blank(), largest=blank())
                self._sums[f"steady {name}"] = _Decayed(half_life, blank(), root=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimators, the same at all times."""
        return (LAST, *self._sums, *(f"{name} season" for name in self.seasons))

    def learn(self, ids: Ints, counts: Ints, at: float, length: float = 1.0) -> None:
        """Take in a period that has passed, or a part of one.

        Args:
            ids: Items asked for, each once; shape (k,).
            counts: How often; shape (k,).
            at: When it began, in periods since the first.
            length: How long it was, in periods.
        """
        real = counts.astype(np.float64)
        self.seen = max(self.seen, int(ids.max(initial=-1)) + 1)
        for one in self._sums.values():
            one.learn(ids, real, at, length)
        self._last, self._length, self._at = (ids, real), length, at + length
        if self.seasons:
            self._remember(int(at), ids, real)

    def _remember(self, number: int, ids: Ints, counts: Reals) -> None:
        self._past.setdefault(number, []).append((ids, counts))
        if not self._numbers or self._numbers[-1] != number:
            self._numbers.append(number)
        while self._numbers[0] < number - self._longest:
            del self._past[self._numbers.popleft()]

    def expected(self, name: str) -> Reals:
        """Return what an estimator expects of the next period, in requests.

        Args:
            name: One of `names`.

        Returns:
            Expected requests of the items seen so far; shape (seen,). Before a season has passed
            its estimator is the decayed count that it is built on.
        """
        if name == LAST:
            found = np.zeros(self.seen)
            found[self._last[0]] = self._last[1] / self._length
            return found
        if name in self._sums:
            return self._sums[name].expected(self.seen)
        level = self._sums[f"decay {HALF_LIVES[-2]:g}"].expected(self.seen)
        return self._in_season(self.seasons[name.removesuffix(" season")], level)

    def _in_season(self, season: int, level: Reals) -> Reals:
        coming = int(self._at)
        found, exposure = np.zeros(self.seen), 0.0
        for years in range(1, _YEARS + 1):
            for shift, share in ((0, 1.0), (-1, 0.5), (1, 0.5)):
                parts = self._past.get(coming - years * season + shift)
                if parts is None or season < 2:
                    continue
                weight = share * 0.5 ** ((years - 1) / 2)
                exposure += weight
                for ids, counts in parts:
                    found[ids] += weight * counts
        return level if not exposure else (found / exposure + level) / 2


def top(expected: Reals, last: Ints, capacity: int) -> Ints:
    """Return the items expected most, best first; of equals the one asked for latest.

    Args:
        expected: Expected requests; shape (m,). Items expected nothing of are left out.
        last: Index of each item's last access, ascending in time; at least shape (m,).
        capacity: How many at most.
    """
    hopeful = np.flatnonzero(expected > 0)
    recency = (last[hopeful] + 1.0) / (float(last.max(initial=0)) + 1.0)
    score = expected[hopeful] * (1.0 + _TIE * recency)
    if len(hopeful) > capacity:
        best = np.argpartition(-score, capacity - 1)[:capacity]
        hopeful, score = hopeful[best], score[best]
    found: Ints = hopeful[np.argsort(-score, kind="stable")]
    return found
