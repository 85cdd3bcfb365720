"""Trap `out_of_step`: warm-up or traffic that reaches a host before it is ready."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from warmup_lib.doctor.base import Part, counted
from warmup_lib.doctor.log import Log, Row
from warmup_lib.doctor.splits import FEW
from warmup_lib.errors import HostUnavailable
from warmup_lib.targets.host import ModelHost

READY = "Send nothing before the host is ready: wait for /health and for the model in /v1/models."

_POLL_S = 0.1
_SHOWN = 3
_UNREADY = (502, 503)
_START = timedelta(minutes=15)
"""A host that is busy with its start is ready after this, or never."""


def look_at_log(log: Log) -> Part:
    """Look for requests that were sent to a host which was not ready, and by how much too early."""
    noted = [row for row in (*log.rows, *log.own) if row.evidence is not None]
    asked = [row for row in noted if row.evidence and row.evidence.host_ready is not None]
    early = [row for row in asked if row.evidence and row.evidence.host_ready is False]
    begin = _before_first_answer(log) if not asked else []
    # A host that sheds load answers so too, now and then.
    starting = begin if len(begin) >= FEW else []
    if early or starting:
        told = [f"{counted(len(early or starting), 'request')} reached a host that was not ready"]
        warming = sum(row.warmup for row in early)
        if warming:
            told.append(f"{warming:,} of them warm-up")
        if offsets := _offsets(early or starting, asked or [*log.rows]):
            told.append(f"up to {_spans(offsets)} too early")
        return Part("found", ", ".join(told), READY)
    if asked:
        return Part("ok", f"each of {counted(len(asked), 'request')} went to a host that was ready")
    if any(row.status for row in log.rows):
        few = f"{counted(len(begin), 'request')}, too few to tell," if begin else "no request"
        return Part("ok", f"{few} got 502 or 503 before the log's first answer")
    return Part("not_checked", "the log tells neither status nor whether hosts were ready")


def _before_first_answer(log: Log) -> list[Row]:
    """Return the requests at the start of a log that got 502 or 503, up to the first answer."""
    found: list[Row] = []
    for row in sorted((*log.rows, *log.own), key=lambda row: row.ts):
        if row.status in _UNREADY and row.ts - log.begins < _START:
            found.append(row)
        elif row.status is not None and row.status < 400 and row.served_from is None:
            return found
    return []  # nothing was ever answered: that is no start


def _offsets(early: Sequence[Row], rows: Sequence[Row]) -> list[float]:
    """Return for each run of early requests the seconds from its first to the host's readiness."""
    runs: dict[tuple[Any, ...], datetime] = {}
    ready: dict[Any, list[datetime]] = defaultdict(list)
    unready = {id(row) for row in early}
    for row in rows:
        if id(row) not in unready and (row.status or 200) < 400:
            ready[_host(row)].append(row.ts)
    for row in early:
        after = [at for at in ready[_host(row)] if at > row.ts]
        if after:
            place = (_host(row), min(after))
            runs[place] = min(row.ts, runs.get(place, row.ts))
    return sorted(((until - at).total_seconds() for (_, until), at in runs.items()), reverse=True)


def _host(row: Row) -> str | None:
    return row.evidence.host if row.evidence is not None else None


def _spans(seconds: Sequence[float]) -> str:
    shown = [f"{s * 1000:,.0f} ms" if s < 1 else f"{s:,.1f} s" for s in seconds[:_SHOWN]]
    more = len(seconds) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


@dataclass(frozen=True)
class Watched:
    """A host that was waited for.

    Attributes:
        ready: Whether it is ready now.
        waited_s: Seconds until then.
        said: What it answered before it was ready; empty: nothing else.
        reached: Whether it answered at all.
    """

    ready: bool
    waited_s: float
    said: str
    reached: bool


async def watch(host: ModelHost, wait_s: float) -> Watched:
    """Wait until a host is healthy and serves a model.

    Args:
        host: The host.
        wait_s: Longest wait, in seconds.

    Raises:
        ConfigError: It refuses the key.
    """
    begun = time.monotonic()
    said, reached = "", False
    while True:
        try:
            await host.ready()
            if await host.served():
                return Watched(True, time.monotonic() - begun, said, True)
            said, reached = "it serves no model", True
        except HostUnavailable as error:
            said = error.reason
            reached = reached or "answers" in said
        waited = time.monotonic() - begun
        if waited >= wait_s:
            return Watched(False, waited, said, reached)
        await asyncio.sleep(_POLL_S)


def judge(seen: Watched, epoch: str, warmed: Sequence[datetime]) -> Part:
    """Say what a wait for a host showed, and how it compares with what warmed the host.

    Args:
        seen: The wait.
        epoch: When the host's process started, as its metrics say.
        warmed: When items of the latest plan were warmed in that process.
    """
    if not seen.reached:
        return Part("not_checked", f"the host is down: {seen.said}")
    if not seen.ready:
        return Part("found", f"the host answers, and is not ready: {seen.said}", READY)
    if seen.said:
        told = f"the host was ready {_spans([seen.waited_s])} after it was first asked"
        return Part("found", f"{told} ({seen.said})", READY)
    return Part("ok", f"the host is ready{_since(epoch, warmed)}")


def _since(epoch: str, warmed: Sequence[datetime]) -> str:
    """Say how long after the start of the process the first item was warmed."""
    try:
        start = datetime.fromtimestamp(float(epoch), UTC)
    except ValueError:
        return ""
    after = [(at - start).total_seconds() for at in warmed if at >= start]
    return (
        f"; it was first warmed {_spans([min(after)])} after its process started" if after else ""
    )
