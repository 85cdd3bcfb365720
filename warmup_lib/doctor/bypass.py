"""Trap `bypass`: requests that go round the caches though nobody meant them to.

A caller who always says `no-cache` means it: an evaluation, a monitor. What is looked for is the
rest: headers and parameters that come and go, routes on which no look is made, and ids in prompts
or keys that make every request new.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from warmup_lib.bypass import by_header
from warmup_lib.distil.volatile import Head, volatile
from warmup_lib.doctor.base import Part, counted
from warmup_lib.doctor.log import Log, Row
from warmup_lib.doctor.splits import FEW, Splits

DELIBERATE = 0.9
"""A caller of whose requests (`FEW` at least) this share goes round the caches means to."""

LEAST_SHARE = 0.005
"""Stray requests are a trap from this share of all on, and from `FEW` on."""

MOST_MEANT = 0.5
"""Even where all callers mean it, caches of which more than half of the traffic keeps clear are
worth a question."""

_CALLERS = (
    "user_agent", "headers.user-agent", "headers.User-Agent", "metadata.user_agent", "caller",
    "client", "user", "end_user", "metadata.user", "metadata.caller",
)  # fmt: skip
_REQUEST_ID = re.compile(
    r"\b(?:x-)?(?:request|trace|correlation|span|call)[-_ ]?id\b\W{0,3}[\w-]{6,}"
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    re.IGNORECASE,
)
_ASK = "Ask the callers whether it is meant; strip the header or parameter where it is not."
_ROUTES = "Look at the gateway's routes and middleware: every one has to look the request up."
_IDS = "Keep request ids, session ids and moments out of prompts and keys."


def look_at_log(log: Log, splits: Splits) -> Part:
    """Look for requests that go round the caches, by header, parameter, route, or an id in them."""
    if not log.rows:
        return Part("not_checked", "the log holds no requests")
    around = [row for row in log.rows if row.bypass or _asked(row)]
    meant = _deliberate(log.rows, around)
    stray = [row for row in around if _caller(row) not in meant]
    ways = Counter(_way(row) for row in stray)
    unlooked = [row for row in log.rows if _unlooked(row)]
    told, remedies = [], []
    if _many(len(stray), len(log.rows)):
        by = ", ".join(f"{count:,} by {way}" for way, count in sorted(ways.items()))
        callers = len({_caller(row) for row in stray})
        told.append(
            f"{_share(len(stray), log)} of callers that do so now and then go round the caches "
            f"({by}; {counted(callers, 'caller')})"
        )
        remedies.append(_ASK)
    elif len(around) > MOST_MEANT * len(log.rows):
        told.append(f"{_share(len(around), log)} go round the caches")
        remedies.append(_ASK)
    if _many(len(unlooked), len(log.rows)):
        told.append(f"for {_share(len(unlooked), log)} no look was made though nothing asked so")
        remedies.append(_ROUTES)
    if ids := _ids(log, splits):
        told.append(ids)
        remedies.append(_IDS)
    if told:
        return Part("found", "; ".join(told), " ".join(dict.fromkeys(remedies)))
    kept = f", by {counted(len(meant), 'caller')} who always do" if around else ""
    return Part("ok", f"{_share(len(around), log)} go round the caches{kept}")


def _share(count: int, log: Log) -> str:
    return f"{count:,} of {counted(len(log.rows), 'request')}"


def _many(count: int, of: int) -> bool:
    return count >= max(FEW, LEAST_SHARE * of)


def _asked(row: Row) -> bool:
    return row.evidence is not None and row.evidence.bypass is not None


def _unlooked(row: Row) -> bool:
    """Say whether a gateway that writes down its looks made none, and nothing told it to.

    A request that it refused has none either.
    """
    return (
        row.evidence is not None
        and not row.evidence.looked
        and not row.bypass
        and not _asked(row)
        and (row.status or 200) < 400
    )


def _way(row: Row) -> str:
    if row.evidence is not None and row.evidence.bypass is not None:
        return str(row.evidence.bypass)
    return "header" if by_header(row.cache_control) else "parameter"


def _caller(row: Row) -> tuple[str, str]:
    """Return who sent a request, as far as the log tells: its tenant, and a client or a segment."""
    fields = row.fields
    named = next((fields[name] for name in _CALLERS if name in fields), None)
    return row.tenant, named or fields.get("user_segment", "")


def _deliberate(rows: Iterable[Row], around: Iterable[Row]) -> set[tuple[str, str]]:
    every = Counter(_caller(row) for row in rows)
    round_them = Counter(_caller(row) for row in around)
    return {
        who
        for who, count in round_them.items()
        if every[who] >= FEW and count >= DELIBERATE * every[who]
    }


def _ids(log: Log, splits: Splits) -> str:
    """Say what of the requests is new each time because an id or a moment is in it."""
    told = []
    keys = splits.of("volatile")
    if len(keys) >= FEW:
        told.append(f"{counted(len(keys), 'prompt')} have a new key with every request")
    heads = volatile(_heads(log))
    if heads:
        told.append(
            f"{counted(len(heads), 'system prompt')} of a day differ in an id or a moment only"
        )
    forms: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in log.rows:
        blanked = _REQUEST_ID.sub("", row.prompt)
        if blanked != row.prompt:
            forms[row.tenant, blanked].add(row.text_digest)
    same = [texts for texts in forms.values() if len(texts) >= FEW]
    if same:
        told.append(f"{sum(map(len, same)):,} prompts differ in a request's id only")
    return "; ".join(told)


def _heads(log: Log) -> list[Head]:
    found = {
        (row.ts.date(), row.tenant, row.model, row.adapter, row.head_digest): row
        for row in log.rows
        if row.system_prompt
    }
    return [
        Head(group[:4], group[4], row.system_prompt, row.tools or "")
        for group, row in found.items()
    ]
