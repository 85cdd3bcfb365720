"""Typed access to the fields of a decoded row: right type and range, or the row is rejected.

Absent, null and the empty string are one thing: None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from warmup_lib.ingest.outcome import Reason, Rejected

LARGEST = 2**53
"""Whole numbers above this are not exact in JSON readers that use floats."""


def text(row: Mapping[str, Any], name: str) -> str | None:
    """Return a string."""
    value = row.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise Rejected(Reason.WRONG_TYPE, name)
    return value


def required_text(row: Mapping[str, Any], name: str) -> str:
    """Return a string that must be there and hold more than white space."""
    value = text(row, name)
    if value is None or value.isspace():
        raise Rejected(Reason.MISSING_FIELD, name)
    return value


def number(row: Mapping[str, Any], name: str, *, negative: bool = False) -> float | None:
    """Return a finite number, at least 0 unless `negative`."""
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Rejected(Reason.WRONG_TYPE, name)
    if not math.isfinite(value) or (value < 0 and not negative):
        raise Rejected(Reason.OUT_OF_RANGE, name)
    return float(value)


def whole(row: Mapping[str, Any], name: str, largest: int = LARGEST) -> int | None:
    """Return a whole number from 0 to `largest`; 12.0 is one."""
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Rejected(Reason.WRONG_TYPE, name)
    if not 0 <= value <= largest:
        raise Rejected(Reason.OUT_OF_RANGE, name)
    if value != int(value):
        raise Rejected(Reason.WRONG_TYPE, name)
    return int(value)


def items(row: Mapping[str, Any], name: str) -> list[Any] | None:
    """Return a list; an empty one is None."""
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise Rejected(Reason.WRONG_TYPE, name)
    return value or None


def texts(row: Mapping[str, Any], name: str) -> list[str] | None:
    """Return a list of strings; an empty one is None."""
    value = items(row, name)
    if value is not None and not all(isinstance(v, str) for v in value):
        raise Rejected(Reason.WRONG_TYPE, name)
    return value


def mapping(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object; absent is the empty one."""
    value = row.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Rejected(Reason.WRONG_TYPE, name)
    return value
