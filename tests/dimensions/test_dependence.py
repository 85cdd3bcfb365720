"""The test of dependence against all deals, drawn deals, and its promise under the null."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.dimensions.codes import dense
from warmup_lib.dimensions.dependence import Strata, _Pairs

Ints = np.ndarray[Any, np.dtype[np.int64]]


def agreeing(stratum: Ints, answer: Ints, value: Ints) -> float:
    """Pairs of one stratum, value and answer, each stratum weighted as the test does."""
    total = 0.0
    for s in np.unique(stratum):
        here = np.flatnonzero(stratum == s)
        equal = sum(
            int(answer[i] == answer[j] and value[i] == value[j])
            for n, i in enumerate(here)
            for j in here[:n]
        )
        total += equal / max(len(here) - 1, 1)
    return total


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=6))
@settings(max_examples=40)
def test_mean_and_variance_are_those_of_all_deals(rows: list[tuple[int, int]]) -> None:
    answer, value = (dense(np.array(column)) for column in zip(*rows, strict=True))
    one = np.zeros(len(rows), np.int64)
    strata = Strata(one, answer)
    counts = np.bincount(value)
    owner = np.zeros(len(counts), np.int64)
    mean, variance = strata._moments(_Pairs.of(counts, owner, 1))
    deals = [
        agreeing(one, answer, value[list(order)]) * (len(rows) - 1)
        for order in permutations(range(len(rows)))
    ]
    assert mean[0] == pytest.approx(np.mean(deals))
    assert variance[0] == pytest.approx(np.var(deals), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_p_is_never_smaller_than_that_of_drawn_deals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, 4, 24)
    value = rng.integers(0, 2, 24)
    answer = np.where(rng.random(24) < 0.4, value, rng.integers(0, 3, 24))
    found = Strata(dense(stratum), dense(answer)).test(dense(value))
    seen = agreeing(stratum, answer, value)
    draws, as_many = 2000, 0
    for _ in range(draws):
        dealt = value.copy()
        for s in range(4):
            here = np.flatnonzero(stratum == s)
            dealt[here] = rng.permutation(value[here])
        as_many += agreeing(stratum, answer, dealt) >= seen - 1e-9
    error = 3 * np.sqrt(max(as_many, 1)) / draws
    assert found.p >= as_many / draws - error


def test_chance_alone_is_called_dependence_no_more_often_than_promised() -> None:
    rng = np.random.default_rng(3)
    below = np.zeros(3)
    levels = np.array([0.05, 0.01, 0.001])
    for _ in range(600):
        stratum = np.repeat(np.arange(30), rng.integers(2, 12, 30))
        skewed = rng.geometric(0.5, len(stratum))
        strata = Strata(dense(stratum), dense(skewed))
        found = strata.test(dense(rng.integers(0, 5, len(stratum))))
        below += found.p <= levels
    assert (below / 600 <= levels + 1e-9).all()


def test_perfect_dependence_is_seen_in_few_requests() -> None:
    stratum = np.repeat(np.arange(6), 8)
    value = np.tile([0, 1], 24)
    found = Strata(stratum, value).test(value)
    assert found.p < 1e-6
    assert (found.effect, found.fit, found.comparisons) == (pytest.approx(1), pytest.approx(1), 6)


def test_what_is_never_compared_is_not_excluded() -> None:
    alone = Strata(np.arange(5), np.zeros(5, np.int64)).test(np.arange(5))
    assert (alone.p, alone.at_most, alone.comparisons) == (1.0, 1.0, 0)
    equal = Strata(np.zeros(400, np.int64), np.zeros(400, np.int64)).test(np.arange(400))
    assert equal.at_most == pytest.approx(3 / 399)


def test_without_two_of_one_value_all_disagreement_may_be_dependence() -> None:
    stratum, value = np.repeat(np.arange(50), 2), np.tile([0, 1], 50)
    found = Strata(stratum, dense(np.arange(100))).test(value)
    assert (found.p, found.effect, found.at_most) == (1.0, 1.0, 1.0)
