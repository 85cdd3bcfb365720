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

    def interval(
        self, mean: Reals, level: float = 0.8, squares: Reals | None = None
    ) -> tuple[Counts, Counts]:
        """Return the central interval that holds a count with this probability, both ends in it.

        Args:
            mean: (n,) expected counts, not negative.
            level: Probability, between 0 and 1.
            squares: (n,) where a count is a sum, the sum of the squares of what is expected of its
                parts, which are taken to drift apart; None: it has one part.
        """
        tail = (1 - level) / 2
        return self._at(mean, tail, squares), self._at(mean, 1 - tail, squares)

    def pit(self, mean: Reals, realised: Counts, seed: int, squares: Reals | None = None) -> Reals:
        """Return randomised probability integral transforms: uniform on 0..1 where all is right.

        A count has a step of the distribution to itself; a point of it is drawn (Czado, Gneiting
        and Held, Biometrics 65, 2009).

        Args:
            mean: (n,) expected counts.
            realised: (n,) what came.
            seed: Of the draw.
            squares: As for `interval`.
        """
        from scipy.stats import nbinom

        size, share = self._shape(mean, squares)
        below = nbinom.cdf(realised - 1, size, share)
        upto = nbinom.cdf(realised, size, share)
        point = np.random.default_rng(seed).random(len(realised))
        return np.asarray(below + point * (upto - below), dtype=np.float64)

    def log_likelihood(self, mean: Reals, realised: Counts) -> float:
        """Return the log-likelihood of what came, given what was expected."""
        from scipy.stats import nbinom

        size, share = self._shape(mean)
        return float(nbinom.logpmf(realised, size, share).sum())

    def _at(self, mean: Reals, probability: float, squares: Reals | None) -> Counts:
        from scipy.stats import nbinom

        size, share = self._shape(mean, squares)
        return np.asarray(nbinom.ppf(probability, size, share), dtype=np.int64)

    def _shape(self, mean: Reals, squares: Reals | None = None) -> tuple[Reals, Reals]:
        mean = np.maximum(np.asarray(mean, dtype=np.float64), 1e-9)
        drifted = mean if squares is None else squares / mean
        beyond = max(self.burst, _LEAST) + self.drift * drifted
        return mean / beyond, 1 / (1 + beyond)


def fit(heat: Reals, realised: Counts) -> tuple[Curve, Spread]:
    """Return curve and spread under which what came true was most likely; defaults for few pairs.

    Args:
        heat: (n,) decayed counts of the past; those of nothing are left out.
        realised: (n,) the requests that then came.
    """
    from scipy.optimize import minimize

    known = heat > 0
    counts, seen = heat[known], realised[known]
    if len(counts) < _ENOUGH:
        return Curve(), Spread()

    def shaped(logs: Reals) -> tuple[Curve, Spread]:
        scale, half, power, burst, drift = map(float, np.exp(logs))
        return Curve(scale, half, power), Spread(burst, drift, len(counts))

    def loss(logs: Reals) -> float:
        curve, spread = shaped(logs)
        return -spread.log_likelihood(curve.mean(counts), seen) / len(counts)

    start = np.log([1.0, 1.0, 0.3, Spread.burst, Spread.drift])
    return shaped(minimize(loss, start, method="L-BFGS-B", bounds=np.log(_BOUNDS)).x)
