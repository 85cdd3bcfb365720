"""The lowest threshold that provably keeps the share of wrong hits under a bound.

Thresholds are tested from a strict one down, each by the exact binomial upper limit (Clopper and
Pearson) of its wrong hits, until one fails: as the order is fixed before any label is seen, no
correction for the number of thresholds is needed (fixed sequence testing, as in "Learn then Test").
A sequence that begins where few hits are would end at the first wrong one; so there are up to three
beginnings, which share what may go wrong among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from warmup_lib.embed.encoder import Floats

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Verdict = Literal["kept", "none_keeps", "too_few"]

GRID = tuple(round(0.995 - 0.005 * step, 3) for step in range(60))
"""Thresholds that are tested, strict ones first: 0.995 to 0.70."""

LEAST = GRID[-1]
"""Similarity below which a pair tells nothing here."""

IDENTITY_ONLY = 1.0
"""The threshold where none keeps the bound: only an equal vector still serves."""

_ROUNDING = 1e-6
_ALLOWED = (0, 3, 10)
"""Wrong hits with which the first test of each sequence still passes."""


@dataclass(frozen=True)
class Calibrated:
    """What calibration on some pairs gave.

    Attributes:
        verdict: `kept`: the threshold keeps the bound; `none_keeps`: no threshold was shown to;
            `too_few`: there are too few pairs to show it for any.
        threshold: The threshold; None where there are too few pairs.
        pairs: Pairs that are at least `LEAST` similar.
        hits: Of these, at the threshold or above.
        wrong: Of these, wrong.
        upper: Upper limit of wrong / hits, at the confidence that was asked for.
    """

    verdict: Verdict
    threshold: float | None
    pairs: int
    hits: int
    wrong: int
    upper: float


def calibrate(similarity: Floats, wrong: Mask, bound: float, confidence: float) -> Calibrated:
    """Return the lowest threshold whose wrong hits / hits are shown to be at most `bound`.

    The chance to name a threshold that does not keep the bound is at most 1 - `confidence`, for
    requests that come as the pairs do.

    Args:
        similarity: (n,) cosines of the pairs; independent of each other.
        wrong: (n,) whether a hit would be wrong.
        bound: Largest share of wrong hits.
        confidence: Chance with which the promise is kept.
    """
    hits = [int((similarity >= at).sum()) for at in GRID]
    wrongs = [int((wrong & (similarity >= at)).sum()) for at in GRID]
    starts, level = _starts(hits, bound, confidence)
    if not starts:
        return Calibrated("too_few", None, hits[-1], 0, 0, 1.0)
    passed = [-1]
    for start in starts:
        for step in range(start, len(GRID)):
            if upper_limit(wrongs[step], hits[step], level) > bound:
                break
            passed.append(step)
    lowest = max(passed)
    if lowest < 0:
        return equal_only(similarity, wrong, confidence)
    n, w = hits[lowest], wrongs[lowest]
    return Calibrated("kept", GRID[lowest], hits[-1], n, w, upper_limit(w, n, confidence))


def equal_only(similarity: Floats, wrong: Mask, confidence: float) -> Calibrated:
    """Return that no threshold keeps the bound on some pairs."""
    equal = similarity >= IDENTITY_ONLY - _ROUNDING
    n, w = int(equal.sum()), int((wrong & equal).sum())
    pairs = int((similarity >= LEAST).sum())
    return Calibrated("none_keeps", IDENTITY_ONLY, pairs, n, w, upper_limit(w, n, confidence))


def lower_limit(wrong: int, hits: int, confidence: float) -> float:
    """Return the exact (Clopper-Pearson) lower limit of a share, at a one-sided confidence."""
    if not wrong:
        return 0.0
    from scipy.stats import beta

    return float(beta.ppf(1 - confidence, wrong, hits - wrong + 1))


def upper_limit(wrong: int, hits: int, confidence: float) -> float:
    """Return the exact (Clopper-Pearson) upper limit of a share, at a one-sided confidence."""
    if wrong >= hits:
        return 1.0
    from scipy.stats import beta

    return float(beta.ppf(confidence, wrong + 1, hits - wrong))


@lru_cache
def hits_needed(wrong: int, bound: float, confidence: float) -> int:
    """Return the fewest hits with which so many wrong ones still keep the bound."""
    low, high = wrong + 1, wrong + 2
    while upper_limit(wrong, high, confidence) > bound:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if upper_limit(wrong, middle, confidence) > bound:
            low = middle
        else:
            high = middle
    return high


def _starts(hits: list[int], bound: float, confidence: float) -> tuple[list[int], float]:
    """Return where the sequences begin, and the confidence that each of their tests has to reach.

    Both are taken from the number of hits alone, without looking at what is wrong.
    """
    for count in range(len(_ALLOWED), 0, -1):
        level = 1 - (1 - confidence) / count
        needed = [hits_needed(wrong, bound, level) for wrong in _ALLOWED[:count]]
        if hits[-1] >= needed[-1]:
            return [next(i for i, n in enumerate(hits) if n >= need) for need in needed], level
    return [], confidence
