"""How popular each prompt is on each day: a Zipf law whose ranks drift slowly.

Every prompt has a score of two parts: one that stays and one that follows a daily first-order
autoregression. The day's popularity is the Zipf weight of the score's rank among the prompts that
exist that day, so the skew is the same each day while its holders change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def zipf(exponent: float, size: int) -> Array:
    """Return the Zipf weights of ranks 1 to `size`, summing to one."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    shares: Array = weights / weights.sum()
    return shares


class Walk:
    """Scores that drift: variance `kept` stays, the rest forgets at `memory` a day."""

    def __init__(self, base: Array, kept: float, memory: float, rng: np.random.Generator) -> None:
        self._stays = np.sqrt(kept) * base
        self._spread = np.sqrt(1 - kept)
        self._memory = memory
        self._rng = rng
        self._moves = self._spread * rng.standard_normal(len(base))

    @property
    def score(self) -> Array:
        """Today's scores; a higher one is more popular."""
        score: Array = self._stays + self._moves
        return score

    def step(self) -> None:
        """Go on to the next day."""
        shock = self._spread * np.sqrt(1 - self._memory**2)
        self._moves = self._memory * self._moves + shock * self._rng.standard_normal(
            len(self._moves)
        )
