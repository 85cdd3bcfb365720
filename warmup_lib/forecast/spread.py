"""How far realised counts fall from their forecasts: intervals, and the test of intervals.

Counts scatter more than Poisson's, for what is asked comes in bursts and days differ. They are
taken as negative binomial with variance `mean + burst * mean + drift * mean ** 2`: `burst` is
what requests that come together add, `drift` what a changed rate does. Both are fitted on past
forecasts and what then came true (maximum likelihood).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Reals = np.ndarray[Any, np.dtype[np.float64]]
Counts = np.ndarray[Any, np.dtype[np.int64]]

_LEAST = 1e-4
_MOST = 1e4
_ENOUGH = 100
"""Pairs without which a fit would say more about chance than about the log."""


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

    def interval(self, mean: Reals, level: float = 0.8) -> tuple[Counts, Counts]:
        """Return the central interval that holds a count with this probability, both ends in it.

        Args:
            mean: (n,) expected counts, not negative.
            level: Probability, between 0 and 1.
        """
        tail = (1 - level) / 2
        return self._at(mean, tail), self._at(mean, 1 - tail)

    def pit(self, mean: Reals, realised: Counts, seed: int) -> Reals:
        """Return randomised probability integral transforms: uniform on 0..1 where all is right.

        A count has a step of the distribution to itself; a point of it is drawn (Czado, Gneiting
        and Held, Biometrics 65, 2009).

        Args:
            mean: (n,) expected counts.
            realised: (n,) what came.
            seed: Of the draw.
        """
        size, share = self._shape(mean)
        from scipy.stats import nbinom

        below = nbinom.cdf(realised - 1, size, share)
        upto = nbinom.cdf(realised, size, share)
        point = np.random.default_rng(seed).random(len(realised))
        return np.asarray(below + point * (upto - below), dtype=np.float64)

    def log_likelihood(self, mean: Reals, realised: Counts) -> float:
        """Return the log-likelihood of what came, given what was expected."""
        from scipy.stats import nbinom

        size, share = self._shape(mean)
        return float(nbinom.logpmf(realised, size, share).sum())

    def _at(self, mean: Reals, probability: float) -> Counts:
        from scipy.stats import nbinom

        size, share = self._shape(mean)
        return np.asarray(nbinom.ppf(probability, size, share), dtype=np.int64)

    def _shape(self, mean: Reals) -> tuple[Reals, Reals]:
        mean = np.maximum(np.asarray(mean, dtype=np.float64), 1e-9)
        beyond = max(self.burst, _LEAST) + self.drift * mean
        return mean / beyond, 1 / (1 + beyond)


def fit(expected: Reals, realised: Counts) -> Spread:
    """Return the spread under which what came true was most likely; the default for few pairs.

    Args:
        expected: (n,) forecasts of the past, in requests; those of nothing are left out.
        realised: (n,) the requests that then came.
    """
    from scipy.optimize import minimize

    known = expected > 0
    mean, seen = expected[known], realised[known]
    if len(mean) < _ENOUGH:
        return Spread()

    def spread(logs: Reals) -> Spread:
        burst, drift = np.exp(np.clip(logs, np.log(_LEAST), np.log(_MOST)))
        return Spread(float(burst), float(drift), len(mean))

    def loss(logs: Reals) -> float:
        return -spread(logs).log_likelihood(mean, seen) / len(mean)

    start = np.log([Spread.burst, Spread.drift])
    found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-7})
    return spread(found.x)
