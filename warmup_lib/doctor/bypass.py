"""Trap `bypass`: requests that go round the caches though nobody meant them to.

A caller who always says `no-cache` means it: an evaluation, a monitor. What is looked for is the
rest: headers and parameters that come and go, routes on which no look is made, and ids in prompts,
parameters or keys that make every request new.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict

from warmup_lib.bypass import by_header, pragma_in
from warmup_lib.distil.volatile import Head, volatile
from warmup_lib.doctor.base import Part, counted
from warmup_lib.doctor.callers import MIXED, Around, around, many
from warmup_lib.doctor.log import Log, Row
from warmup_lib.doctor.splits import FEW, Splits
from warmup_lib.keys import canonical_params

MOST_MEANT = 0.5
"""Even where all callers mean it, caches of which more than half of the traffic keeps clear are
worth a question."""

_EACH_NEW = 5
"""So many requests of one prompt, each with parameters of its own: they hold an id, or a draw."""

_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_STAMP = re.compile(
    # What a gateway puts before or after a text, not an id that the text asks about.
    r"(?:^|[\n.;!?|\[(])\s*(?:x-)?(?:request|trace|correlation|span|call)[-_ ]?id\W{1,3}[\w-]{6,}"
    rf"\W*$|\A\s*\[{_UUID}\]|\[{_UUID}\]\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)
_ASK = "Ask the callers whether it is meant; strip the header or parameter where it is not."
_ROUTES = "Look at the gateway's routes and middleware: every one has to look the request up."
_IDS = "Keep request ids, session ids and moments out of prompts, parameters and keys."


def look_at_log(log: Log, splits: Splits) -> Part:
    """Look for requests that go round the caches, by header, parameter, route, or an id in them."""
    if not log.rows:
        return Part("not_checked", "the log holds no requests")
    who = around(log.rows, lambda row: bool(row.bypass) or _asked(row))
    unlooked = [row for row in log.rows if _unlooked(row)]
    told, remedies = [], []
    if who.matters:
        told.append(_strays(who, log))
        remedies.append(_ASK)
    elif len(who.all) >= FEW and len(who.all) > MOST_MEANT * len(log.rows):
        told.append(f"{_share(len(who.all), log)} go round the caches")
        remedies.append(_ASK)
    if many(len(unlooked), len(log.rows)):
        told.append(f"for {_share(len(unlooked), log)} no look was made though nothing asked so")
        remedies.append(_ROUTES)
    if ids := _ids(log, splits):
        told.append(ids)
        remedies.append(_IDS)
    if not told:
        return Part("ok", _sound(who, log))
    if who.all and _ASK not in remedies:
        told.append(_sound(who, log))
    return Part("found", "; ".join(told), " ".join(dict.fromkeys(remedies)))


def _strays(who: Around, log: Log) -> str:
    ways = Counter(_way(row) for row in who.stray)
    by = ", ".join(f"{count:,} by {way}" for way, count in sorted(ways.items()))
    told = (
        f"{_share(len(who.stray), log)} of callers that do so now and then go round the caches "
        f"({by}; {counted(who.callers, 'caller')})"
    )
    if who.mixed > len(who.stray) / len(log.rows):
        told += f", of one caller, client or tenant {who.mixed:.0%}"
    return told + (f"; {who.lost:,} of them could have hit" if who.lost else "")


def _sound(who: Around, log: Log) -> str:
    told = f"{_share(len(who.all), log)} go round the caches"
    deliberate = len(who.all) - len(who.stray)
    if deliberate:
        told += f", {deliberate:,} of them by {counted(len(who.meant), 'caller')} who always do"
    if who.stray:
        told += (
            f", {len(who.stray):,} here and there ({counted(who.callers, 'caller')}): no habit of "
            "anybody's"
        )
    return told


def _share(count: int, log: Log) -> str:
    return f"{count:,} of {counted(len(log.rows), 'request')}"


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
    return "header" if by_header(row.cache_control, pragma_in(row.extra)) else "parameter"


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
    if stamped := _stamped(log):
        told.append(f"{stamped:,} prompts differ in a request's id only")
    if drawn := _drawn(log):
        told.append(f"{counted(drawn, 'prompt')} have new parameters with every request")
    return "; ".join(told)


def _stamped(log: Log) -> int:
    """Return how many prompts are others but for the id that a gateway stamped on them."""
    forms: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in log.rows:
        blanked = _STAMP.sub("", row.prompt)
        if blanked != row.prompt:
            forms[row.tenant, blanked].add(row.text_digest)
    count = sum(len(texts) for texts in forms.values() if len(texts) >= FEW)
    # A text with an id can be pasted by some; a gateway stamps whatever comes its way.
    return count if count >= MIXED * len(log.rows) else 0


def _drawn(log: Log) -> int:
    """Return how many prompts never come with the same parameters that change answers."""
    said: dict[object, list[str]] = defaultdict(list)
    for row in log.rows:
        if row.params:
            same = (row.tenant, row.model, row.adapter, row.content)
            said[same].append(canonical_params(json.loads(row.params)))
    new = [all_ for all_ in said.values() if len(set(all_)) == len(all_) >= _EACH_NEW]
    return len(new) if len(new) >= FEW else 0


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
