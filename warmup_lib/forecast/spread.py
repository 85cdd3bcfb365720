"""What decayed counts are worth in requests to come, and how far those scatter about it.

Rare items are asked for again less often than their decayed counts say, for much of what is asked
once never is again: small counts are shrunk, and history says by how much. Counts
scatter more than Poisson's, for what is asked comes in bursts and rates change. They are taken as
negative binomial with variance `mean + burst * mean ** power`. All figures are fitted on past
forecasts and what then came true (maximum likelihood; hot items weigh more than their number says,
for they are few and matter most), and the burst so that intervals held their share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Reals = np.ndarray[Any, np.dtype[np.float64]]
Counts = np.ndarray[Any, np.dtype[np.int64]]

HOT = 5.0
"""Expected count from which an interval is wide enough to be held to its share."""

LEVEL = 0.8
"""Share of hot items whose counts an interval is to hold."""

_LEAST = 1e-4
_BOUNDS = [(0.05, 20.0), (1e-2, 1e2), (1e-3, 5.0), (_LEAST, 1e4), (1.0, 2.0)]
"""Of the curve's scale, half and power, and the spread's burst and power."""

_ENOUGH = 100
"""Pairs without which a fit would say more about chance than about the log."""


@dataclass(frozen=True)
class Curve:
    """Requests to expect of a decayed count: `scale * heat * (heat / (heat + half)) ** power`.

    Attributes:
        scale: What a hot item's count is worth.
        half: Count below which shrinking sets in.
        power: How strongly; 0: not at all.
    """

    scale: float = 1.0
    half: float = 1.0
    power: float = 0.0

    def mean(self, heat: Reals) -> Reals:
        """Return the requests to expect.

        Args:
            heat: (n,) decayed counts, not negative.
        """
        heat = np.asarray(heat, np.float64)
        return np.asarray(self.scale * heat * (heat / (heat + self.half)) ** self.power)


@dataclass(frozen=True)
class Spread:
    """How counts scatter about their forecasts.

    Attributes:
        burst: What the variance of a count of 1 has beyond Poisson's.
        power: How that grows with the mean: 1 where requests come in bursts of one size, 2 where
            the rate itself changes.
        pairs: Forecasts it was fitted on; 0: none, and it is the default.
    """

    burst: float = 1.0
    power: float = 1.5
    pairs: int = 0

    def variance(self, mean: Reals) -> Reals:
        """Return the variance of counts.

        Args:
            mean: (n,) expected counts, not negative.
        """
        return np.asarray(mean + self.burst * mean**self.power)


def interval(mean: Reals, variance: Reals, level: float = LEVEL) -> tuple[Counts, Counts]:
    """Return the central interval that holds a count with this probability, both ends in it.

    Args:
        mean: (n,) expected counts, not negative.
        variance: (n,) their variance; below the mean it counts as the mean, which is Poisson.
        level: Probability, between 0 and 1.
    """
    from scipy.stats import nbinom

    shape = _shape(mean, variance)
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = (np.asarray(nbinom.ppf(tail, *shape), dtype=np.int64) for tail in tails)
    return low, high


def pit(mean: Reals, variance: Reals, realised: Counts, seed: int) -> Reals:
    """Return randomised probability integral transforms: uniform on 0..1 where all is right.

    A count has a step of the distribution to itself; a point of it is drawn (Czado, Gneiting and
    Held, Biometrics 65, 2009).

    Args:
        mean: (n,) expected counts.
        variance: (n,) their variance, as for `interval`.
        realised: (n,) what came.
        seed: Of the draw.
    """
    from scipy.stats import nbinom

    shape = _shape(mean, variance)
    below, upto = nbinom.cdf(realised - 1, *shape), nbinom.cdf(realised, *shape)
    point = np.random.default_rng(seed).random(len(realised))
    return np.asarray(below + point * (upto - below), dtype=np.float64)


def _shape(mean: Reals, variance: Reals) -> tuple[Reals, Reals]:
    """Return the two parameters of the negative binomial distribution in SciPy's way."""
    mean = np.maximum(np.asarray(mean, dtype=np.float64), 1e-9)
    beyond = np.maximum(variance / mean - 1, _LEAST)
    return mean / beyond, 1 / (1 + beyond)


def fit(heat: Reals, realised: Counts) -> tuple[Curve, Spread]:
    """Return curve and spread under which what came true was most likely; defaults for few pairs.

    Args:
        heat: (n,) decayed counts of the past; those of nothing are left out.
        realised: (n,) the requests that then came.
    """
    from scipy.optimize import minimize
    from scipy.stats import nbinom

    known = heat > 0
    counts, seen = heat[known], realised[known]
    if len(counts) < _ENOUGH:
        return Curve(), Spread()

    def shaped(logs: Reals) -> tuple[Curve, Spread]:
        scale, half, shrink, burst, power = map(float, np.exp(logs))
        return Curve(scale, half, shrink), Spread(burst, power, len(counts))

    def loss(logs: Reals) -> float:
        curve, spread = shaped(logs)
        mean = curve.mean(counts)
        shape = _shape(mean, spread.variance(mean))
        return -float(weight @ nbinom.logpmf(seen, *shape))

    weight = _weights(counts)
    start = np.log([1.0, 1.0, 0.3, Spread.burst, Spread.power])
    curve, spread = shaped(minimize(loss, start, method="L-BFGS-B", bounds=np.log(_BOUNDS)).x)
    return curve, _held(spread, curve.mean(counts), seen)


def _held(spread: Spread, mean: Reals, seen: Counts) -> Spread:
    """Return a spread whose intervals of hot items held their share, by so much more or less burst.

    Likelihood is decided by the many rare items; an interval is wanted of the few hot ones.
    """
    hot = mean >= HOT
    if hot.sum() < _ENOUGH:
        return spread
    for times in np.geomspace(0.2, 5.0, 65):
        wider = replace(spread, burst=spread.burst * float(times))
        low, high = interval(mean[hot], wider.variance(mean[hot]), LEVEL)
        if ((low <= seen[hot]) & (seen[hot] <= high)).mean() >= LEVEL:
            return wider
    return spread


def _weights(counts: Reals) -> Reals:
    """Weigh items of one size, by factors of two, by the root of how many they are together."""
    _, size, many = np.unique(np.floor(np.log2(counts)), return_inverse=True, return_counts=True)
    weight = 1 / np.sqrt(many[size])
    return np.asarray(weight / weight.sum())
