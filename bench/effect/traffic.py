"""The later traffic as requests to send: which hour is the peak, which requests are first ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from warmup_lib.layers.base import Lookup
from warmup_lib.verify.window import lookups

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """One request of the log.

    Attributes:
        at: When it arrived, in seconds since the epoch.
        lookup: What a layer looks up.
        answer_tokens: Length of its answer in the log, in tokens.
    """

    at: float
    lookup: Lookup
    answer_tokens: int

    @property
    def head(self) -> tuple[str, str]:
        """Tenant and head: the digest covers model and adapter too."""
        return self.lookup.tenant, self.lookup.head_digest

    @property
    def hour(self) -> int:
        """Hours since the epoch."""
        return int(self.at // 3600)


def asks_of(rows: pa.Table, default_tokens: int = 64) -> list[Ask]:
    """Return rows of `requests` in order of arrival.

    Args:
        rows: The rows.
        default_tokens: Length of an answer that the log does not hold.
    """
    rows = rows.sort_by([("ts", "ascending"), ("request_id", "ascending")])
    sizes = rows["completion_tokens"].to_pylist()
    times = [moment.timestamp() for moment in rows["ts"].to_pylist()]
    return [
        Ask(at, lookup, size or default_tokens)
        for at, lookup, size in zip(times, lookups(rows), sizes, strict=True)
    ]


def busiest(asks: Iterable[Ask]) -> list[int]:
    """Return the hours by number of requests, the busiest first; equal ones in order of time."""
    count = Counter(ask.hour for ask in asks)
    return sorted(count, key=lambda hour: (-count[hour], hour))


def firsts(asks: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Return the first of each kind, in order."""
    seen: dict[Hashable, T] = {}
    for ask in asks:
        seen.setdefault(key(ask), ask)
    return list(seen.values())


def at_rate(asks: Sequence[Ask], rate: float, seconds: float) -> list[tuple[float, Ask]]:
    """Return the first `rate * seconds` requests and when each is due, in seconds from now.

    The log's own arrivals, so much faster that the last of these is due at the end: bursts stay.

    Args:
        asks: In order of arrival.
        rate: Requests a second.
        seconds: How long.

    Raises:
        ValueError: There are not so many.
    """
    count = max(2, round(rate * seconds))
    if count > len(asks):
        raise ValueError(f"{count} requests are needed and the log has {len(asks)}")
    taken = asks[:count]
    begin, length = taken[0].at, taken[-1].at - taken[0].at
    return [(seconds * (ask.at - begin) / length, ask) for ask in taken]
