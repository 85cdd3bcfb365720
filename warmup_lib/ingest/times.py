"""When a request arrived: ISO-8601 or epoch in any of four units, always returned in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from warmup_lib.ingest.outcome import Reason, Rejected

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_AHEAD = timedelta(days=1)
_NUMBER = re.compile(r"\s*(\d{9,20})(\.\d+)?\s*", re.ASCII)
_ISO = re.compile(r"\s*\d{4}-?\d{2}-?\d{2}[T ]\d{2}", re.ASCII | re.IGNORECASE)
_UNITS = ((10**11, 10**6), (10**14, 10**3), (10**17, 1))
"""(below this it is seconds / ms / us, microseconds in one); above the last it is nanoseconds."""


@dataclass
class Clock:
    """Reads timestamps under one zone and one idea of "now".

    Attributes:
        zone: Where a time without zone was taken.
        as_of: Now; a request more than a day later than this has a wrong timestamp.
        without_zone: How many times had no zone.
    """

    zone: tzinfo
    as_of: datetime
    without_zone: int = field(default=0, init=False)

    def read(self, value: Any, name: str, zone: tzinfo | None = None) -> datetime:
        """Return a field's value as a time in UTC.

        Args:
            value: ISO-8601 text, a datetime, or an epoch as number or numeric text.
            name: The field's name.
            zone: Zone that the dialect itself states for times written without one.

        Raises:
            Rejected: It is absent, no time, before 2000, or more than a day in the future.
        """
        if value is None or value == "":
            raise Rejected(Reason.MISSING_FIELD, name)
        try:
            at = self._parse(value, zone)
        except (ValueError, OverflowError):
            raise Rejected(Reason.BAD_TIMESTAMP, name) from None
        except TypeError:
            raise Rejected(Reason.WRONG_TYPE, name) from None
        if at < _EARLIEST:
            raise Rejected(Reason.BAD_TIMESTAMP, name)
        if at > self.as_of + _AHEAD:
            raise Rejected(Reason.FUTURE_TIMESTAMP, name)
        return at

    def _parse(self, given: Any, zone: tzinfo | None) -> datetime:
        value: object = _from_text(given) if isinstance(given, str) else given
        if isinstance(value, datetime):
            if value.tzinfo is None:
                self.without_zone += zone is None
                value = value.replace(tzinfo=zone or self.zone)
            return value.astimezone(UTC)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError("no time")
        return _EPOCH + timedelta(microseconds=_microseconds(value))


def _from_text(text: str) -> datetime | int | float:
    if match := _NUMBER.fullmatch(text):
        return float(text) if match[2] else int(match[1])
    if _ISO.match(text):
        return datetime.fromisoformat(text.strip().upper())
    raise ValueError("neither ISO-8601 nor an epoch")


def _microseconds(value: int | float) -> int:
    """Return an epoch of unknown unit in microseconds; its magnitude tells the unit."""
    for below, factor in _UNITS:
        if value < below:
            return round(value * factor)
    return int(value) // 1000
