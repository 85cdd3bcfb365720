"""The calibrated threshold keeps its bound on fresh data, as often as it promises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from warmup_lib.threshold.bounds import (
    GRID,
    IDENTITY_ONLY,
    calibrate,
    hits_needed,
    upper_limit,
)

BOUND, CONFIDENCE = 0.01, 0.95
Risk = Callable[[np.ndarray], np.ndarray]

POPULATIONS: dict[str, Risk] = {
    "falls steeply": lambda cosine: 0.5 * np.exp(-(cosine - 0.7) * 20),
    "just above the bound everywhere": lambda cosine: np.full(len(cosine), 0.0101),
    "keeps a floor of noise": lambda cosine: np.clip(0.03 - (cosine - 0.7) * 0.06, 0.004, 1),
}


def drawn(count: int, risk: Risk, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    cosine = random.beta(6, 1.5, count).astype(np.float32)
    return cosine, random.random(count) < risk(cosine)


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("count", [1000, 4000])
def test_the_bound_is_kept_on_fresh_data_at_the_promised_confidence(
    population: str, count: int
) -> None:
    risk, random = POPULATIONS[population], np.random.default_rng(7)
    fresh = random.beta(6, 1.5, 400_000).astype(np.float32)
    error = {at: float(risk(fresh[fresh >= at]).mean()) for at in GRID}
    runs, broken, kept = 200, 0, 0
    for _ in range(runs):
        made = calibrate(*drawn(count, risk, random), BOUND, CONFIDENCE)
        kept += made.verdict == "kept"
        broken += made.verdict == "kept" and error[made.threshold or 0] > BOUND
    # Were the promise broken in 5 % of the runs, more than this would happen once in 1,000 times.
    assert broken <= binom.ppf(0.999, runs, 1 - CONFIDENCE)
    if population == "falls steeply" and count == 4000:
        assert kept > runs / 2  # it does not keep its promise by refusing all


def test_the_limit_is_that_of_clopper_and_pearson() -> None:
    assert upper_limit(0, 299, 0.95) == pytest.approx(1 - 0.05 ** (1 / 299))
    assert upper_limit(10, 100, 0.95) == pytest.approx(0.16372, abs=1e-5)
    assert upper_limit(5, 5, 0.95) == 1.0
    assert upper_limit(0, 0, 0.95) == 1.0


@given(st.integers(0, 12))
def test_the_needed_hits_are_the_fewest_that_keep_the_bound(wrong: int) -> None:
    needed = hits_needed(wrong, BOUND, CONFIDENCE)
    assert upper_limit(wrong, needed, CONFIDENCE) <= BOUND
    assert upper_limit(wrong, needed - 1, CONFIDENCE) > BOUND


def test_known_answers() -> None:
    assert [hits_needed(w, BOUND, CONFIDENCE) for w in (0, 1, 3)] == [299, 473, 773]
    cosine = np.linspace(0.7, 1, 3001).astype(np.float32)
    made = calibrate(cosine, cosine < 0.85, BOUND, CONFIDENCE)
    assert made.verdict == "kept"
    assert made.threshold == pytest.approx(0.85, abs=0.006)
    assert made.pairs == 3001
    assert made.hits == int((cosine >= made.threshold).sum())
    assert made.upper <= BOUND


def test_where_the_nearest_pairs_are_wrong_only_equal_questions_are_served() -> None:
    cosine = np.linspace(0.7, 0.999, 3000).astype(np.float32)
    made = calibrate(cosine, np.arange(3000) % 20 == 0, BOUND, CONFIDENCE)
    assert (made.verdict, made.threshold, made.hits) == ("none_keeps", IDENTITY_ONLY, 0)


def test_too_few_pairs_show_nothing() -> None:
    made = calibrate(np.full(298, 0.9, np.float32), np.zeros(298, bool), BOUND, CONFIDENCE)
    assert (made.verdict, made.threshold, made.pairs) == ("too_few", None, 298)
    made = calibrate(np.full(299, 0.9, np.float32), np.zeros(299, bool), BOUND, CONFIDENCE)
    assert (made.verdict, made.threshold) == ("kept", 0.7)
    assert calibrate(np.zeros(0, np.float32), np.zeros(0, bool), BOUND, CONFIDENCE).pairs == 0


@given(st.integers(0, 2**32 - 1))
def test_a_stricter_bound_never_gives_a_lower_threshold(seed: int) -> None:
    pairs = drawn(2000, POPULATIONS["falls steeply"], np.random.default_rng(seed))
    strict, loose = (calibrate(*pairs, bound, CONFIDENCE).threshold for bound in (0.02, 0.05))
    assert strict is None or (loose is not None and loose <= strict)
