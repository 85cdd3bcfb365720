"""An id trace as arrays: what was asked for when, and the periods it falls into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from warmup_lib.errors import InputDataError

Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

MAX_PERIODS = 20_000
"""Periods of a backtest. Each is planned some twenty times over: this many take minutes."""

MAX_PLANNED = 25_000_000
"""Items in the plans of all periods together, by one estimator; by all these take some 4 GB."""

_MICROSECOND = timedelta(microseconds=1)
_LENGTHS = {
    "1m": 60, "5m": 300, "10m": 600, "30m": 1800, "1h": 3600, "2h": 7200, "4h": 14_400,
    "6h": 21_600, "12h": 43_200, "1d": 86_400, "7d": 604_800, "30d": 2_592_000,
}  # fmt: skip
"""Lengths of a period that are proposed, in seconds."""


@dataclass(frozen=True)
class Trace:
    """Accesses in the order of time.

    Attributes:
        at: When each was made, microseconds since 1970 in UTC, ascending; shape (n,).
        item: What was asked for, numbered by first appearance from 0; shape (n,).
        cost_ms: Milliseconds that a hit saves; shape (n,); None where the trace has none.
        size_bytes: Bytes of the item; shape (n,); None where the trace has none.
        rows_read: Rows of the source.
        rejected: Rows that could not be used, by reason.
    """

    at: Ints
    item: Ints
    cost_ms: Reals | None = None
    size_bytes: Reals | None = None
    rows_read: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)

    @property
    def accesses(self) -> int:
        """Number of accesses."""
        return len(self.at)

    @property
    def items(self) -> int:
        """Number of distinct items."""
        return int(self.item.max()) + 1


@dataclass(frozen=True)
class Periods:
    """A trace cut at regular times of the clock; periods without accesses are left out.

    Attributes:
        start: Index of each period's first access, and at the end the number of accesses.
        number: Each period's place in time: 0 for the first, 3 for one three lengths later.
        begins_at: When each period begins, microseconds since 1970.
        length: Length, microseconds.
    """

    start: Ints
    number: Ints
    begins_at: Ints
    length: int

    def __len__(self) -> int:
        return len(self.number)

    def spans(self) -> list[tuple[int, int]]:
        """Return first and end index of each period's accesses."""
        return list(pairwise(self.start.tolist()))


def trace_of(
    at: Ints,
    item: Ints,
    cost_ms: Reals | None = None,
    size_bytes: Reals | None = None,
    rows_read: int | None = None,
    rejected: Mapping[str, int] | None = None,
) -> Trace:
    """Return a trace from columns in any order; equal times keep the order given.

    Raises:
        InputDataError: There is no access.
    """
    if not len(at):
        raise InputDataError("the trace holds no access")
    order = np.argsort(at, kind="stable")
    _, first, inverse = np.unique(item[order], return_index=True, return_inverse=True)
    renumbered = np.empty(len(first), np.int64)
    renumbered[np.argsort(first)] = np.arange(len(first))
    return Trace(
        np.asarray(at, np.int64)[order],
        renumbered[inverse],
        None if cost_ms is None else cost_ms[order],
        None if size_bytes is None else size_bytes[order],
        len(at) if rows_read is None else rows_read,
        dict(rejected or {}),
    )


def periods_of(at: Ints, length: timedelta, zone: tzinfo = UTC) -> Periods:
    """Cut a trace at the multiples of `length` after local midnight of its first day.

    Args:
        at: Times, ascending, not empty; microseconds since 1970.
        length: Length of a period.
        zone: Whose midnight.

    Raises:
        InputDataError: `length` is not above zero.
    """
    step = length // _MICROSECOND
    if step <= 0:
        raise InputDataError("a period must be longer than zero, such as 1h")
    first = datetime.fromtimestamp(int(at[0]) / 1e6, zone)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    origin = round(midnight.timestamp() * 1e6)
    of_each = (at - origin) // step
    start = np.flatnonzero(np.diff(of_each, prepend=of_each[0] - 1))
    number = of_each[start]
    return Periods(np.append(start, len(at)), number - number[0], origin + number * step, step)


def check_periods(trace: Trace, capacity: int, length: timedelta, zone: tzinfo = UTC) -> None:
    """Refuse periods so many that planning each would take hours, or more memory than there is.

    Args:
        trace: The accesses.
        capacity: Items that a cache holds.
        length: Length of a period.
        zone: Whose midnight periods are counted from.

    Raises:
        InputDataError: They are too many; it says which length would do.
    """
    most = min(MAX_PERIODS, MAX_PLANNED // min(capacity, trace.items))

    def count(each: timedelta) -> int:
        return len(periods_of(trace.at, each, zone))

    if (found := count(length)) <= most:
        return
    longer = (
        n
        for n, s in _LENGTHS.items()
        if (each := timedelta(seconds=s)) > length
        if count(each) <= most
    )
    advice = next((f"choose --period {name} or longer" for name in longer), "take a shorter trace")
    raise InputDataError(
        f"{found:,} periods are too many: with this trace and capacity {most:,} can be "
        f"planned; {advice}"
    )
