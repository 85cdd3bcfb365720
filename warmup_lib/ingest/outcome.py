"""What can become of one log row: it is kept, or it is quarantined for a reason from a closed list.

A reason names the field at fault and never quotes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """Why a row can't be used."""

    INVALID_JSON = "invalid_json"
    INVALID_UTF8 = "invalid_utf8"
    NUL_BYTE = "nul_byte"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    OUT_OF_RANGE = "out_of_range"
    BAD_TIMESTAMP = "bad_timestamp"
    FUTURE_TIMESTAMP = "future_timestamp"
    BAD_TENANT = "bad_tenant"
    BAD_MESSAGES = "bad_messages"
    EMPTY_PROMPT = "empty_prompt"
    PROMPT_NOT_LOGGED = "prompt_not_logged"
    UNSUPPORTED_CALL = "unsupported_call"
    ID_CONFLICT = "id_conflict"
    TRUNCATED = "truncated"
    DAMAGED = "damaged"


class Rejected(Exception):
    """A row can't be used.

    Args:
        reason: Why.
        field: The field at fault; None when the whole row is.
    """

    def __init__(self, reason: Reason, field: str | None = None) -> None:
        super().__init__(reason, field)
        self.reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class Raw:
    """One row as it lies in a file.

    Attributes:
        position: Row number, from 1; empty lines are not rows.
        offset: Where it begins in the decompressed file, in bytes; None in Parquet.
        size: Its length in bytes, line end included; None in Parquet.
        value: What was decoded; None where `reason` is set.
        reason: Why it could not be decoded.
    """

    position: int
    offset: int | None
    size: int | None
    value: Any = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that can't be used, with its place."""

    position: int
    offset: int | None
    size: int | None
    reason: Reason
    field: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A row in the form that is stored.

    Attributes:
        place: The row as it lay in the file, without its value.
        day: Day of arrival in the configured zone.
        tenant: Tenant.
        request_id: Id given by the gateway.
        response_digest: Identity of the whole request.
        values: The columns of `requests`, in order.
        weight: About how many bytes its texts take.
        redacted: Something was removed from it.
        warmup: It is our own traffic.
    """

    place: Raw
    day: date
    tenant: str
    request_id: str
    response_digest: str
    values: tuple[Any, ...]
    weight: int
    redacted: bool
    warmup: bool

    def refused(self, reason: Reason, field: str) -> Quarantined:
        """Return the same row as quarantined."""
        return Quarantined(self.place.position, self.place.offset, self.place.size, reason, field)
