"""Who sent the requests of a log that go round the caches, and who of them means it.

A caller is judged by itself from `FEW` requests on. Callers with fewer are judged together where
they have one client and one kind of name, as an evaluation that takes a new user for each request.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from warmup_lib.doctor.log import Row
from warmup_lib.doctor.splits import FEW

DELIBERATE = 0.9
"""Callers of whose requests (`FEW` at least) this share goes round the caches mean to."""

MIXED = 0.05
"""From this share on of a caller's, a client's or a tenant's requests, or of the requests that
could have hit, going round now and then is no accident of a few."""

_CHANCE = MIXED / 2
_LEVEL = 0.01
"""So rarely may a share that is really this one be taken for `MIXED`, over all that are tested."""

LEAST_SHARE = 0.005
"""What concerns less than this share of a log is no trap."""

_CLIENTS = (
    "user_agent", "headers.user-agent", "headers.User-Agent", "metadata.user_agent", "caller",
    "metadata.caller", "client",
)  # fmt: skip
_USERS = ("user", "end_user", "metadata.user")
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{8,}|\d+", re.IGNORECASE)

Source = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Around:
    """The requests of a log that go round the caches.

    Attributes:
        all: All of them.
        meant: Who means to.
        stray: Those of all others.
        callers: Who sent the strays.
        mixed: The largest share that strays have in the requests of a caller, client, tenant, or
            of all, where it is a habit and no chance; 0: nobody's is.
        lost: Strays that could have hit: others had asked the same before.
        repeats: Requests that could have hit.
    """

    all: Sequence[Row]
    meant: frozenset[Source]
    stray: Sequence[Row]
    callers: int
    mixed: float
    lost: int
    repeats: int

    @property
    def matters(self) -> bool:
        """Whether strays are a habit of somebody, or take a good part of the hits."""
        return self.mixed > 0 or _is_habit(self.lost, self.repeats, 1)


def many(count: int, of: int) -> bool:
    """Say whether so many of a log's requests are worth a word."""
    return count >= max(FEW, LEAST_SHARE * of)


def around(rows: Sequence[Row], goes: Callable[[Row], bool]) -> Around:
    """Return who goes round the caches.

    Args:
        rows: The log, by time.
        goes: Says whether a request does.
    """
    callers = [_caller(row) for row in rows]
    counts = Counter(callers)
    sources = [who if counts[who] >= FEW else _kind(who) for who in callers]
    went = [goes(row) for row in rows]
    every, them = Counter(sources), Counter(_where(sources, went))
    meant = frozenset(
        who for who, n in them.items() if every[who] >= FEW and n >= DELIBERATE * every[who]
    )
    stray = [one and who not in meant for who, one in zip(sources, went, strict=True)]
    others = [who not in meant for who in sources]
    lost, repeats = _lost(rows, callers, stray)
    return Around(
        all=list(_where(rows, went)),
        meant=meant,
        stray=list(_where(rows, stray)),
        callers=len(set(_where(callers, stray))),
        mixed=_mixed(
            len(rows),
            _groups(_where(sources, others), _where(callers, others)),
            _groups(_where(sources, stray), _where(callers, stray)),
        ),
        lost=lost if many(lost, len(rows)) else 0,
        repeats=repeats,
    )


def _caller(row: Row) -> Source:
    """Return who sent a request as far as the log tells: tenant, client or segment, user."""
    fields = row.fields
    client = next((fields[name] for name in _CLIENTS if name in fields), None)
    user = next((fields[name] for name in _USERS if name in fields), "")
    return row.tenant, client or fields.get("user_segment", ""), user


def _kind(caller: Source) -> Source:
    """Return what callers who differ by an id or a number have in common."""
    tenant, client, user = caller
    return tenant, client, _ID.sub("#", user), "kind"


def _where(things: Iterable[T], chosen: Iterable[bool]) -> Iterable[T]:
    return (thing for thing, one in zip(things, chosen, strict=True) if one)


def _groups(sources: Iterable[Source], callers: Iterable[Source]) -> Counter[Source]:
    """Count requests by who is judged, by client, by tenant, and all."""
    counts: Counter[Source] = Counter()
    for source, caller in zip(sources, callers, strict=True):
        counts.update((source, caller[:2], caller[:1], ()))
    return counts


def _mixed(rows: int, every: Counter[Source], strays: Counter[Source]) -> float:
    tests = sum(count >= FEW for count in every.values())
    shares = [
        count / every[who]
        for who, count in strays.items()
        if many(count, rows) and _is_habit(count, every[who], tests)
    ]
    return max((share for share in shares if share < DELIBERATE), default=0.0)


def _is_habit(count: int, of: int, tests: int) -> bool:
    """Say whether a share is `MIXED` or more, and no chance (Chernoff's bound of the tail)."""
    if not count or count < MIXED * of:
        return False
    share = count / of
    gain = share * math.log(share / _CHANCE)
    if share < 1:
        gain += (1 - share) * math.log((1 - share) / (1 - _CHANCE))
    return tests * math.exp(-of * gain) <= _LEVEL


def _lost(rows: Sequence[Row], callers: Sequence[Source], stray: Sequence[bool]) -> tuple[int, int]:
    """Return the strays that others had asked before, and all requests asked before.

    Who asks the same again and goes round the caches wants another answer.
    """
    asked: dict[tuple[str, str], set[Source]] = defaultdict(set)
    lost = repeats = 0
    for row, who, strays in zip(rows, callers, stray, strict=True):
        before = asked[row.tenant, row.response_digest]
        repeats += bool(before)
        again = before == {who} and bool(who[-1])
        lost += strays and bool(before) and not again
        before.add(who)
    return lost, repeats
