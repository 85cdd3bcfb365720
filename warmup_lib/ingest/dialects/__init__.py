"""The known log dialects: one module each, registered here by one line."""

from __future__ import annotations

from collections.abc import Iterable

from warmup_lib.errors import InputDataError
from warmup_lib.ingest.dialects import jsonl, litellm
from warmup_lib.ingest.logrow import Dialect
from warmup_lib.ingest.outcome import Raw, Reason

AUTO = "auto"

DIALECTS: dict[str, Dialect] = {
    d.name: d
    for d in (
        jsonl.Jsonl(),
        litellm.LiteLLM(),
    )
}

_LOOKED_AT = 100
_NO_LOG = (None, Reason.INVALID_JSON, Reason.NOT_AN_OBJECT)


def named(name: str) -> Dialect | None:
    """Return the dialect of that name; None for `auto`.

    Raises:
        InputDataError: There is none.
    """
    if name == AUTO:
        return None
    if name not in DIALECTS:
        raise InputDataError(
            f"unknown log format '{name}'; known are {', '.join(sorted(DIALECTS))} and {AUTO}"
        )
    return DIALECTS[name]


def foreign(rows: Iterable[Raw]) -> bool:
    """Return whether rows are of no log: there are some, all sound, without a field of a dialect.

    What is damaged may have been a log: it is not foreign.
    """
    known = frozenset[str]().union(*(dialect.columns for dialect in DIALECTS.values()))
    some = False
    for raw in rows:
        if raw.reason not in _NO_LOG:
            return False
        if isinstance(raw.value, dict) and not known.isdisjoint(raw.value):
            return False
        some = True
    return some


def recognised(rows: Iterable[Raw]) -> Dialect:
    """Return the dialect of the first row that one recognises.

    Where none is, it is the canonical one, whose reasons then say what the rows lack.
    """
    for raw, _ in zip(rows, range(_LOOKED_AT), strict=False):
        for dialect in DIALECTS.values():
            if isinstance(raw.value, dict) and dialect.recognises(raw.value):
                return dialect
    return DIALECTS["jsonl"]
