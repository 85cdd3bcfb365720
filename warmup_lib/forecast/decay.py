"""The decayed count: what a request of each past day is worth in expected requests a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from warmup_lib.errors import ConfigError
from warmup_lib.tables import MICRO


def day_weights(
    days: Sequence[str], half_life: timedelta, season: Mapping[str, float] | None = None
) -> dict[str, int]:
    """Return what one request of each day adds to the heat, in millionths of a request a day.

    A request loses half its worth every `half_life`. The weights sum to exactly one request, so
    that a steady demand of r a day has a heat of r; a day that is not there does not count as a
    day without demand. Being integers, they make heat a sum that is exact in any order and under
    any split over workers.

    Args:
        days: Days read, ISO dates, oldest first, not empty.
        half_life: Age at which a request counts half; above zero.
        season: Days that count so many times more than their age says.

    Raises:
        ConfigError: The half life is zero.
    """
    if half_life <= timedelta(0):
        raise ConfigError("forecast.half_life must be above zero, such as 3d")
    last = date.fromisoformat(days[-1])
    worth = {
        day: (season or {}).get(day, 1.0) * 0.5 ** ((last - date.fromisoformat(day)) / half_life)
        for day in days
    }
    total = sum(worth.values())
    weights = {day: round(MICRO * value / total) for day, value in worth.items()}
    weights[days[-1]] += MICRO - sum(weights.values())
    return weights
