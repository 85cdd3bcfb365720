"""Which requests are known already: a retry is counted once, a reused id is told apart.

The index is a private SQLite database that lives in memory while it is small and on disk beyond
that, so that its size does not bound the size of a log. It holds digests only.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from enum import Enum
from types import TracebackType
from typing import NamedTuple

from warmup_lib.ingest.outcome import Kept
from warmup_lib.lake import Lake

_CACHE_KIB = 32 * 1024
_BATCH = 10_000


class Verdict(Enum):
    """What the index says of a request."""

    NEW = "new"
    STORED = "stored"
    """This very row is in the lake: a run that was stopped midway wrote it."""
    RETRY = "retry"
    CONFLICT = "conflict"


class Known(NamedTuple):
    """A request that is in the lake."""

    tenant: str
    request_id: str
    response_digest: str
    source: str
    position: int


class Seen:
    """Index of requests by tenant and id, within a day and its neighbours.

    Args:
        load: Returns what the lake holds of a day; asked once a day, before any of its rows.
    """

    def __init__(self, load: Callable[[date], Iterable[Known]]) -> None:
        self._load = load
        self._loaded: set[int] = set()
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute(
            "CREATE TABLE seen (key BLOB, day INTEGER, response TEXT, source TEXT, "
            "position INTEGER, PRIMARY KEY (key, day)) WITHOUT ROWID"
        )
        self._db.execute("BEGIN")

    def __enter__(self) -> Seen:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def judge(self, row: Kept, source: str) -> Verdict:
        """Return what is known of a row, and know it from now on."""
        day = row.day.toordinal()
        for near in (day - 1, day, day + 1):
            if near not in self._loaded:
                self._fill(near)
        key = _key(row.tenant, row.request_id)
        found = self._db.execute(
            "SELECT response, source, position FROM seen WHERE key = ? AND day BETWEEN ? AND ?",
            (key, day - 1, day + 1),
        ).fetchall()
        if not found:
            self._db.execute(
                "INSERT INTO seen VALUES (?, ?, ?, ?, ?)",
                (key, day, row.response_digest, source, row.place.position),
            )
            return Verdict.NEW
        if any((s, p) == (source, row.place.position) for _, s, p in found):
            return Verdict.STORED
        same = any(response == row.response_digest for response, _, _ in found)
        return Verdict.RETRY if same else Verdict.CONFLICT

    def _fill(self, day: int) -> None:
        self._loaded.add(day)
        self._db.executemany(
            "INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?, ?)",
            (
                (_key(k.tenant, k.request_id), day, k.response_digest, k.source, k.position)
                for k in self._load(date.fromordinal(day))
            ),
        )


@contextmanager
def stored_in(lake: Lake) -> Iterator[Callable[[date], Iterable[Known]]]:
    """Give a loader of the requests that a lake holds now; it streams a day at a time."""
    columns = ", ".join(Known._fields)
    with closing(lake.sql()) as connection:

        def load(day: date) -> Iterable[Known]:
            found = connection.execute(f"SELECT {columns} FROM requests WHERE day = ?", [day])
            while rows := found.fetchmany(_BATCH):
                yield from map(Known._make, rows)

        yield load


def _key(tenant: str, request_id: str) -> bytes:
    return hashlib.blake2b(f"{tenant}\0{request_id}".encode(), digest_size=16).digest()
