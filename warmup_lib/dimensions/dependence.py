"""Does the answer depend on a field? A stratified permutation test, with exact moments.

Within a stratum (one question, and one value of each field that is held), requests are compared
in pairs: do two of the same value agree in their answer more often than two of any value? Under
the null hypothesis the values could be dealt out anew within each stratum. Mean and variance of
the count of agreeing pairs over all such deals have a closed form, and Bennett's bound of the tail
follows from them: the p-value is never smaller than that of the permutation test itself, for
however few requests, and no deal has to be drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warmup_lib.dimensions.codes import Ints, dense

Reals = np.ndarray[Any, np.dtype[np.float64]]

_NOT_SEEN = 3.0
"""What never happened in n comparisons happens in less than 3 of n (with 95 % confidence)."""

_STEPS = 12
"""Doublings of a rate at most, then thirds taken off its interval; any rate gives a bound."""

_ONE_SIDED = 1.645
"""Standard errors to the upper end of a one-sided 95 % interval."""


@dataclass(frozen=True)
class Dependence:
    """What a test found.

    Attributes:
        p: Upper bound of the permutation test's p-value.
        effect: How much more often requests of different values disagree than those of one value:
            the share of merges over this field that are wrong beyond the noise. Where no two
            requests have one value, so that nothing tells the noise, all of it; infinite where no
            stratum has two requests.
        at_most: Upper end of the 95 % interval of `effect`; 1 where nothing was compared.
        fit: Correlation of "same value" with "same answer" over the pairs; it falls when values
            are split further than the answers are.
        comparisons: Values beyond the first of each stratum: independent chances to differ.
        agreement: Share of the pairs of one value that agree in their answer, which is as much as
            can be seen to get lost; 1 where no two requests have one value.
        power: How much the pairs could tell: none where values are all one, or all different.
    """

    p: float
    effect: float
    at_most: float
    fit: float
    comparisons: int
    agreement: float = 1.0
    power: float = 0.0


@dataclass(frozen=True)
class _Pairs:
    """Of each stratum: pairs of equals, and ordered pairs of such pairs that share a request."""

    equal: Reals
    sharing: Reals

    @classmethod
    def of(cls, sizes: Ints, owner: Ints, strata: int) -> _Pairs:
        """Return those of a partition, given by the sizes of its parts and their strata."""
        n = sizes.astype(np.float64)
        return cls(
            _sums(owner, n * (n - 1) / 2, strata), _sums(owner, n * (n - 1) * (n - 2), strata)
        )


def _sums(owner: Ints, terms: Reals, strata: int) -> Reals:
    return np.bincount(owner, terms, strata).astype(np.float64)


class Strata:
    """Answers of requests, held apart by stratum.

    Args:
        stratum: (requests,) number of the stratum.
        answer: (requests,) number of the answer.
    """

    def __init__(self, stratum: Ints, answer: Ints) -> None:
        sizes = np.bincount(stratum) if len(stratum) else np.zeros(0, np.int64)
        self._kept = sizes[stratum] > 1
        self._stratum = dense(stratum[self._kept])
        answers = int(answer.max()) + 1 if len(answer) else 1
        parts, self._part, counts = np.unique(
            self._stratum * answers + answer[self._kept], return_inverse=True, return_counts=True
        )
        self._owner = parts // answers
        self._n = np.bincount(self._stratum).astype(np.float64)
        self._answers = _Pairs.of(counts, self._owner, len(self._n))
        self._all = self._n * (self._n - 1) / 2
        # A stratum counts by its requests, not by its pairs, of which a hot question has most.
        self._weight = 1 / np.maximum(self._n - 1, 1)

    def test(self, value: Ints) -> Dependence:
        """Test one field.

        Args:
            value: (requests,) number of its value.
        """
        value, strata = value[self._kept], len(self._n)
        if not strata:
            return Dependence(1.0, math.inf, 1.0, 0.0, 0)
        many = int(value.max()) + 1
        cells, counts = np.unique(self._stratum * many + value, return_counts=True)
        values = _Pairs.of(counts, cells // many, strata)
        both, shared = np.unique(self._part * many + value, return_counts=True)
        agreeing = _Pairs.of(shared, self._owner[both // many], strata).equal
        compared = _sums(cells // many, np.ones(len(cells)), strata) - 1
        return self._judged(values, agreeing, compared)

    def _judged(self, values: _Pairs, agreeing: Reals, compared: Reals) -> Dependence:
        mean, variance = self._moments(values)
        weight, answers, pairs = self._weight, self._answers, self._all
        excess = float(weight @ (agreeing - mean))
        spread = float(weight**2 @ variance)
        most = weight * (np.minimum(answers.equal, values.equal) - mean)
        over = pairs - values.equal
        scale = float(weight @ (values.equal * over / pairs))
        same = float(weight @ values.equal)
        comparisons = int(compared.sum())
        # Whatever part of the disagreement over values is noise, it is no larger than all of it.
        effect = raw = at_most = 0.0
        if comparisons:
            raw = 1 - float(weight @ (answers.equal - agreeing)) / float(weight @ over)
            effect, at_most = raw, raw
        if scale > 0:
            effect = excess / scale
            at_most = min(raw, max(effect, 0.0) + _ONE_SIDED * math.sqrt(spread) / scale)
        return Dependence(
            p=_tail(excess, weight**2 * variance, most),
            effect=effect,
            at_most=min(1.0, max(at_most, effect) + _NOT_SEEN / comparisons)
            if comparisons
            else 1.0,
            fit=self._fit(excess, values),
            comparisons=comparisons,
            agreement=float(weight @ agreeing) / same if same else 1.0,
            power=scale,
        )

    def _moments(self, values: _Pairs) -> tuple[Reals, Reals]:
        """Return mean and variance of the agreeing pairs over all deals, by stratum.

        Two pairs are one pair, share a request, or share none: each kind of a partition's pairs
        falls on each kind of the other's in proportion to how many there are of it.
        """
        n, a, b = self._n, self._answers, values
        mean = a.equal * b.equal / self._all
        wedges = np.maximum(n * (n - 1) * (n - 2), 1)
        apart = np.maximum(n * (n - 1) * (n - 2) * (n - 3) / 4, 1)
        a_apart, b_apart = (p.equal * (p.equal - 1) - p.sharing for p in (a, b))
        square = mean + a.sharing * b.sharing / wedges + a_apart * b_apart / apart
        return mean, np.maximum(square - mean**2, 0.0)

    def _fit(self, excess: float, values: _Pairs) -> float:
        def scatter(p: _Pairs) -> float:
            return float(self._weight @ (p.equal * (1 - p.equal / self._all)))

        size = scatter(self._answers) * scatter(values)
        return excess / math.sqrt(size) if size > 0 else 0.0


def _tail(excess: float, variance: Reals, most: Reals) -> float:
    """Return an upper bound of the chance of such a sum of independent terms of mean 0.

    A term of variance v that is never above b has its largest exponential moments where it has two
    values, b and -v/b (Bennett 1962); Markov's inequality holds for every rate, the least is taken.

    Args:
        excess: The sum.
        variance: Of each term.
        most: The largest value of each term.
    """
    open_ = (variance > 0) & (most > 0)
    v, b = variance[open_], most[open_]
    if excess <= 0 or excess**2 < v.sum():  # within one standard deviation
        return 1.0
    chance = v / (b * b + v)
    low = v / b

    def exponent(rate: float) -> float:
        up = np.log(chance) + rate * b
        down = np.log1p(-chance) - rate * low
        return float(np.logaddexp(up, down).sum() - rate * excess)

    return math.exp(min(0.0, _least(exponent, excess / float(v.sum()))))


def _least(function: Callable[[float], float], start: float) -> float:
    """Return about the least value of a convex function on the positive numbers."""
    low, high = 0.0, 2 * start
    for _ in range(_STEPS):
        if function(high) >= function(high / 2):
            break
        low, high = high / 2, 2 * high
    for _ in range(_STEPS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if function(left) < function(right):
            high = right
        else:
            low = left
    return function((low + high) / 2)
