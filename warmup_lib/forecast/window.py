"""Which days of history a stage reads, and which of them are missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from warmup_lib.errors import InputDataError


@dataclass(frozen=True)
class Window:
    """The days of history that count.

    Attributes:
        days: Days that are there, oldest first; the last is the day asked for.
        missing: Days between the first and the last one that are not there.
    """

    days: tuple[str, ...]
    missing: tuple[str, ...]

    def note(self, table: str) -> tuple[str, ...]:
        """Return a sentence that names the missing days; none where none is missing."""
        if not self.missing:
            return ()
        return (f"{table} has no partition for {', '.join(self.missing)}: not counted as history",)


def history(available: Iterable[str], day: str, lookback: timedelta) -> Window:
    """Return the days within `lookback` that end with `day`.

    Args:
        available: Days that have a partition, ISO dates in any order.
        day: The last day, ISO date.
        lookback: How far back to look, in whole days: 1 is the day itself.

    Raises:
        InputDataError: `day` is no ISO date or has no partition.
    """
    try:
        last = date.fromisoformat(day)
    except ValueError:
        raise InputDataError(f"'{day}' is not a day: write it as 2026-03-14") from None
    present = set(available)
    if day not in present:
        raise InputDataError(
            f"no prompts for {day}: run `distil` for it first, as `warmup plan --day {day}` does"
            + (f" (there are {min(present)} to {max(present)})" if present else "")
        )
    wanted = [(last - timedelta(days=age)).isoformat() for age in range(lookback.days)][::-1]
    days = tuple(d for d in wanted if d in present)
    return Window(days, tuple(d for d in wanted if d > days[0] and d not in present))
