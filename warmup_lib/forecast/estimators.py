"""The ways in which past days are turned into expected requests, among which backtests choose.

All are weighted sums over days: heat stays a sum of whole numbers that may be split over workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product

from warmup_lib.forecast.decay import day_weights

DEFAULT = timedelta(days=2)
"""Half-life where history does not say that another one is better."""

_HALF_LIVES = (DEFAULT, *(timedelta(days=d) for d in (1, 4, 8, 16)))
_WEEKDAYS = (1.0, 2.0)


@dataclass(frozen=True)
class Estimator:
    """One way of weighing past days.

    Attributes:
        half_life: Age at which a request counts half.
        weekday: How many times more the days of the same weekday as the served day count.
        pressed: Heat of a tenant that waits longer than aimed at decays faster, in proportion.
    """

    half_life: timedelta
    weekday: float = 1.0
    pressed: bool = False

    @property
    def name(self) -> str:
        """What it is called in reports."""
        days = self.half_life / timedelta(days=1)
        parts = [f"half-life {days:g} d"]
        if self.weekday != 1:
            parts.append(f"same weekday x{self.weekday:g}")
        if self.pressed:
            parts.append("pressed by latency")
        return ", ".join(parts)

    def weights(self, days: Sequence[str], pressure: float = 1.0) -> dict[str, int]:
        """Return what a request of each day adds to the heat of the day after the last one.

        Args:
            days: Days read, ISO dates, oldest first, not empty.
            pressure: Measured latency over the one aimed at; 1: as aimed at, or not known.
        """
        half_life = self.half_life / pressure if self.pressed else self.half_life
        served = (date.fromisoformat(days[-1]) + timedelta(days=1)).weekday()
        season = {d: self.weekday for d in days if date.fromisoformat(d).weekday() == served}
        return day_weights(days, half_life, season)


def family(*, pressed: bool) -> tuple[Estimator, ...]:
    """Return the estimators to choose from; the first one is what counts without evidence.

    Args:
        pressed: Whether latencies are known that can press the decay.
    """
    presses = (False, True) if pressed else (False,)
    return tuple(Estimator(*each) for each in product(_HALF_LIVES, _WEEKDAYS, presses))
