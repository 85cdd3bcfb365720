"""Rolling-origin backtests of the estimators: which one would have served best, and by how much.

Each past day is forecast from the days before it alone. What counts is the share of its requests
that were for the items forecast highest, as many as a plan may hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from warmup_lib.forecast.estimators import Estimator
from warmup_lib.tables import MICRO

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Reals = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

ORIGINS = 7
"""Past days that are forecast: one of each weekday."""

HISTORY = 3
"""Days that a forecast needs before it."""

ENOUGH = 100
"""Forecasts of a tenant without which it is not said that nothing of it comes again."""

_WEEK = 7
_FAR = 2.0
"""A day is never taken to bring more than so many times the decayed counts, or fewer."""


@dataclass(frozen=True)
class Counts:
    """Requests of items by day.

    Attributes:
        days: ISO dates, oldest first, the columns of `requests`.
        requests: (items, days).
        tenant: (items,) number of the tenant of each.
        tenants: Names by number.
    """

    days: Sequence[str]
    requests: csc_array
    tenant: Ints
    tenants: Sequence[str]

    @property
    def origins(self) -> list[int]:
        """Columns of the days that are forecast from those before."""
        return list(range(max(HISTORY, len(self.days) - ORIGINS), len(self.days)))


@dataclass(frozen=True)
class Won:
    """The estimator of one tenant.

    Attributes:
        estimator: The winner.
        share: Share of the requests of past days that its forecasts would have caught, in the
            mean; None: there is too little history, and it is the default.
        gain: How much more that is than the default estimator's.
    """

    estimator: Estimator
    share: float | None = None
    gain: float = 0.0


def choose(
    counts: Counts,
    estimators: Sequence[Estimator],
    room: int,
    pressure: Mapping[str, float] | None = None,
) -> dict[str, Won]:
    """Return the estimator of each tenant.

    The first estimator is kept unless another is better by more than twice the standard error of
    the difference: the best of many is ahead of the first by chance alone.

    Args:
        counts: The history.
        estimators: What to choose from; the first one is the default.
        room: Items that a plan may hold. Each tenant gets what its share of the requests is.
        pressure: By tenant measured latency over the one aimed at.
    """
    origins = counts.origins
    if not origins:
        return {name: Won(estimators[0]) for name in counts.tenants}
    # shares[estimator, origin, tenant]
    shares = np.stack(
        [
            np.stack([_caught(counts, e, o, room, pressure or {}) for o in origins])
            for e in estimators
        ]
    )
    return {
        name: _won(estimators, shares[:, ~np.isnan(shares[0, :, t]), t])
        for t, name in enumerate(counts.tenants)
    }


def forecasts(
    counts: Counts, won: Mapping[str, Won], pressure: Mapping[str, float] | None = None
) -> tuple[Reals, Ints]:
    """Return what the winners would have forecast for past days, and the requests that came.

    Only items with any forecast are in it, all origins one after another.
    """
    expected, realised = [np.zeros(0)], [np.zeros(0, np.int64)]
    for origin in counts.origins:
        heat = _won_heat(counts, won, origin, pressure or {})
        heat *= _volume(counts, origin, heat)
        known = heat > 0
        expected.append(heat[known])
        realised.append(_column(counts, origin)[known].astype(np.int64))
    return np.concatenate(expected), np.concatenate(realised)


def never_again(counts: Counts) -> list[str]:
    """Return the tenants whose items, once asked for, were not asked for on any later day.

    Nothing of theirs is worth warming. It takes some forecasts to say so of a tenant.
    """
    size = len(counts.tenants)
    known, came = np.zeros(size), np.zeros(size)
    for origin in counts.origins:
        past = counts.requests[:, :origin].sum(axis=1) > 0
        known += np.bincount(counts.tenant[past], minlength=size)
        came += np.bincount(counts.tenant[past], _column(counts, origin)[past], size)
    return [name for t, name in enumerate(counts.tenants) if known[t] >= ENOUGH and not came[t]]


def volume(
    counts: Counts, won: Mapping[str, Won], pressure: Mapping[str, float] | None = None
) -> float:
    """Return how many times the decayed counts the day after the last one is expected to bring.

    Weekdays differ: it is the same weekday of last week, as much higher or lower as the last seven
    days were against the seven before. Without a week of history it is 1.
    """
    last = len(counts.days)
    return _volume(counts, last, _won_heat(counts, won, last, pressure or {}))


def _volume(counts: Counts, origin: int, heat: Reals) -> float:
    total = float(heat.sum())
    if origin < _WEEK or not total:
        return 1.0
    by_day = counts.requests.sum(axis=0)
    recent, before = by_day[origin - _WEEK : origin], by_day[: origin - _WEEK][-_WEEK:]
    trend = recent.mean() / before.mean() if len(before) == _WEEK and before.any() else 1.0
    return float(np.clip(by_day[origin - _WEEK] * trend / total, 1 / _FAR, _FAR))


def _won_heat(
    counts: Counts, won: Mapping[str, Won], origin: int, pressure: Mapping[str, float]
) -> Reals:
    heat = np.zeros(len(counts.tenant))
    for estimator in {one.estimator for one in won.values()}:
        ours = [won[name].estimator == estimator for name in counts.tenants]
        mine = np.array(ours, np.bool_)[counts.tenant]
        heat[mine] = _heat(counts, estimator, origin, pressure)[mine]
    return heat


def _won(estimators: Sequence[Estimator], shares: Reals) -> Won:
    """Choose by shares[estimator, origin]."""
    if not shares.shape[1]:
        return Won(estimators[0])
    best = int(np.argmax(shares.mean(axis=1)))
    gains = shares[best] - shares[0]
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else np.inf
    if gains.mean() <= 2 * error:
        best, gains = 0, np.zeros(1)
    return Won(estimators[best], float(shares[best].mean()), float(gains.mean()))


def _caught(
    counts: Counts, estimator: Estimator, origin: int, room: int, pressure: Mapping[str, float]
) -> Reals:
    """Return by tenant the share of an origin's requests caught; NaN where there were none."""
    heat = _heat(counts, estimator, origin, pressure)
    asked = _column(counts, origin)
    size = len(counts.tenants)
    past = np.bincount(counts.tenant, counts.requests[:, :origin].sum(axis=1), size)
    rooms = np.maximum(1, np.rint(room * past / max(1.0, past.sum())))
    order = np.lexsort((-heat, counts.tenant))
    begins = np.searchsorted(counts.tenant[order], np.arange(size))
    place = np.arange(len(order)) - begins[counts.tenant[order]]
    top = order[(place < rooms[counts.tenant[order]]) & (heat[order] > 0)]
    total = np.bincount(counts.tenant, asked, size)
    caught = np.bincount(counts.tenant[top], asked[top], size)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(total > 0, caught / total, np.nan))


def _heat(
    counts: Counts, estimator: Estimator, origin: int, pressure: Mapping[str, float]
) -> Reals:
    days = counts.days[:origin]
    presses = {pressure.get(name, 1.0) if estimator.pressed else 1.0 for name in counts.tenants}
    heat = np.zeros(len(counts.tenant))
    for press in presses:
        weights = np.array(list(estimator.weights(days, press).values())) / MICRO
        ours = counts.requests[:, :origin] @ weights
        if len(presses) == 1:
            return np.asarray(ours)
        same = [pressure.get(name, 1.0) == press for name in counts.tenants]
        mine = np.array(same, np.bool_)[counts.tenant]
        heat[mine] = ours[mine]
    return heat


def _column(counts: Counts, day: int) -> Reals:
    return np.asarray(counts.requests[:, [day]].toarray(), np.float64)[:, 0]
