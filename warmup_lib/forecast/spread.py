"""What decayed counts are worth in requests to come, and how far those scatter about it.

Rare items are asked for again less often than their decayed counts say, for much of what is asked
once never is again: small counts are shrunk, and history says by how much. Counts scatter more
than Poisson's, for what is asked comes in bursts and days differ. They are taken as negative
binomial with variance `mean + burst * mean + drift * mean ** 2`: `burst` is what requests that
come together add, `drift` what a changed rate does. All figures are fitted on past forecasts and
what then came true (maximum likelihood).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Reals = np.ndarray[Any, np.dtype[np.float64]]
Counts = np.ndarray[Any, np.dtype[np.int64]]

_LEAST = 1e-4
_BOUNDS = [(0.05, 20.0), (1e-2, 1e2), (1e-3, 5.0), (_LEAST, 1e4), (_LEAST, 1e2)]
"""Of scale, half, power, burst and drift."""

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
        burst: Requests that come together, besides each first one: 0 is Poisson.
        drift: Squared relative change of the rate itself.
        pairs: Forecasts it was fitted on; 0: none, and it is the default.
    """

    burst: float = 1.0
    drift: float = 0.1
    pairs: int = 0

    def variance(self, mean: Reals, squares: Reals | None = None) -> Reals:
        """Return the variance of counts.

        Args:
            mean: (n,) expected counts, not negative.
            squares: (n,) where a count is a sum, the sum of the squares of what is expected of its
                parts, which are taken to drift apart; None: it has one part.
        """
        return np.asarray(
            (1 + self.burst) * mean + self.drift * (mean**2 if squares is None else squares)
        )


def interval(mean: Reals, variance: Reals, level: float = 0.8) -> tuple[Counts, Counts]:
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
        scale, half, power, burst, drift = map(float, np.exp(logs))
        return Curve(scale, half, power), Spread(burst, drift, len(counts))

    def loss(logs: Reals) -> float:
        curve, spread = shaped(logs)
        mean = curve.mean(counts)
        shape = _shape(mean, spread.variance(mean))
        return -float(nbinom.logpmf(seen, *shape).mean())

    start = np.log([1.0, 1.0, 0.3, Spread.burst, Spread.drift])
    return shaped(minimize(loss, start, method="L-BFGS-B", bounds=np.log(_BOUNDS)).x)
