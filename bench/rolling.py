"""Rolling-origin choice of an estimator by coverage: the share of requests its top items meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warmup_lib.forecast.family import Family, top
from warmup_lib.forecast.trace import Ints

DEFAULT = "damped 16"
"""The estimator that is kept while none is better by more than chance."""

_ENOUGH = 3


@dataclass(frozen=True)
class Origin:
    """What was forecast of one period from those before it, and what came.

    Attributes:
        period: The period forecast, from 0.
        covered: Share of its requests that each estimator's top items met, by name.
        chosen: The estimator that would have been used, chosen by the periods before.
        gain: By how much its mean share was ahead of the default's in those.
        hindsight: Share of the requests that the best items of the very period met.
    """

    period: int
    covered: Mapping[str, float]
    chosen: str
    gain: float
    hindsight: float

    @property
    def ours(self) -> float:
        """Share of the requests that the chosen estimator's top items met."""
        return self.covered[self.chosen]


def rolling(
    periods: Sequence[tuple[Ints, Ints]], items: int, room: int, seasons: Mapping[str, int]
) -> list[Origin]:
    """Forecast every period but the first from those before it, choosing estimators on the way.

    An estimator takes the default's place where it was ahead over all periods forecast before, in
    the mean, by more than the standard error of that: the best of many is ahead by chance, too.

    Args:
        periods: Items asked for, each once, and how often; oldest first.
        items: Number of items there can be.
        room: Items that count as top.
        seasons: Length of each season in periods, by its name.
    """
    family = Family(items, seasons)
    last = np.full(items, -1, np.int64)
    past: list[dict[str, float]] = []
    found = []
    for number, (ids, counts) in enumerate(periods):
        asked = np.zeros(items)
        asked[ids] = counts
        total = float(asked.sum())
        if number and total:
            plans = {name: top(family.expected(name), last, room) for name in family.names}
            covered = {name: float(asked[plan].sum()) / total for name, plan in plans.items()}
            best = np.sort(counts)[-room:]
            found.append(Origin(number, covered, *_choose(past), float(best.sum()) / total))
            past.append(covered)
        family.learn(ids, counts, float(number))
        last[ids] = number
    return found


def _choose(past: Sequence[Mapping[str, float]]) -> tuple[str, float]:
    if len(past) < _ENOUGH:
        return DEFAULT, 0.0
    names = list(past[0])
    shares = np.array([[one[name] for name in names] for one in past])
    best = int(np.argmax(shares.mean(axis=0)))
    gains = shares[:, best] - shares[:, names.index(DEFAULT)]
    if gains.mean() <= gains.std(ddof=1) / len(gains) ** 0.5:
        return DEFAULT, 0.0
    return names[best], float(gains.mean())
