"""The rows of log files, parsed, redacted and without retries; storing them is the stage's part."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.ingest.dialects import named, recognised
from warmup_lib.ingest.logfile import LogFile
from warmup_lib.ingest.outcome import Kept, Quarantined, Reason
from warmup_lib.ingest.prepare import Preparer
from warmup_lib.ingest.seen import Seen, Verdict
from warmup_lib.ingest.times import Clock
from warmup_lib.keys import Keys
from warmup_lib.tables import REQUESTS

_LOG = logging.getLogger(__name__)
_BATCH = 8192
_TENANT_FIELDS = ("tenant", "team_id")


@dataclass
class Tally:
    """What became of rows: `read` is always `kept` + `quarantined` + `duplicates`.

    `nameless` counts the quarantined ones that name no tenant that may be used.
    """

    read: int = 0
    kept: int = 0
    duplicates: int = 0
    redacted: int = 0
    warmup: int = 0
    nameless: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def quarantined(self) -> int:
        """Rows quarantined, for whatever reason."""
        return self.reasons.total()

    def add(self, other: Tally) -> None:
        """Add the counts of `other`."""
        self.read += other.read
        self.kept += other.kept
        self.duplicates += other.duplicates
        self.redacted += other.redacted
        self.warmup += other.warmup
        self.nameless += other.nameless
        self.reasons += other.reasons

    def count_kept(self, row: Kept) -> None:
        """Count a row that is kept."""
        self.read += 1
        self.kept += 1
        self.redacted += row.redacted
        self.warmup += row.warmup

    def count_duplicate(self) -> None:
        """Count a retry of a request that is known."""
        self.read += 1
        self.duplicates += 1

    def count_quarantined(self, row: Quarantined) -> None:
        """Count a row that can't be used."""
        self.read += 1
        self.reasons[row.reason.value] += 1
        self.nameless += row.field in _TENANT_FIELDS


def judged(
    file: LogFile, preparer: Preparer, seen: Seen
) -> Iterator[Quarantined | tuple[Kept, Verdict]]:
    """Yield what becomes of each row of a file; a kept one with what is known of it."""
    for raw in file.rows():
        row = preparer.prepare(raw)
        if isinstance(row, Kept):
            verdict = seen.judge(row, file.source)
            if verdict is not Verdict.CONFLICT:
                yield row, verdict
                continue
            row = row.refused(Reason.ID_CONFLICT, "request_id")
        yield row


def as_table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return rows of `requests` as an Arrow table."""
    schema = REQUESTS.schema
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def read_requests(
    files: Iterable[Path],
    dialect: str,
    config: Config,
    keys: Keys,
    as_of: datetime | None = None,
    tally: Tally | None = None,
) -> pa.Table:
    """Return the requests of log files, parsed and redacted as `ingest` does, storing nothing.

    Args:
        files: Log files, each compressed or not.
        dialect: Name of their format, or `auto`.
        config: Settings.
        keys: Builder of the identities.
        as_of: Now, for telling wrong timestamps; the real clock when absent.
        tally: Told what became of the rows.

    Returns:
        Rows of `requests`, in the order of the files; without retries and rows that can't be used.

    Raises:
        InputDataError: A file can't be read, the format is unknown, or no row can be used.
    """
    wanted = named(dialect)
    clock = Clock(config.zone, as_of or datetime.now(UTC))
    tally = tally if tally is not None else Tally()
    tables = [REQUESTS.empty()]
    rows: list[tuple[Any, ...]] = []
    with Seen(lambda _: ()) as seen:
        for path in files:
            file = LogFile.open(path)
            known = wanted or recognised(file.rows())
            for found in judged(file, Preparer(known, file.source, clock, config, keys), seen):
                if isinstance(found, Quarantined):
                    tally.count_quarantined(found)
                elif found[1] is Verdict.NEW:
                    tally.count_kept(found[0])
                    rows.append(found[0].values)
                else:
                    tally.count_duplicate()
                if len(rows) == _BATCH:
                    tables.append(as_table(rows))
                    rows.clear()
    tables.append(as_table(rows))
    _complain(tally)
    return pa.concat_tables(tables)


def _complain(tally: Tally) -> None:
    if not tally.quarantined:
        return
    why = ", ".join(f"{reason}: {count}" for reason, count in tally.reasons.most_common())
    if not tally.kept:
        raise InputDataError(f"none of {tally.read} rows can be used ({why})")
    _LOG.warning("%d of %d rows can't be used (%s)", tally.quarantined, tally.read, why)
