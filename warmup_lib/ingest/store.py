"""Rows on their way into the lake: buffered by day, written in bounded batches.

A run that is stopped leaves whole batches. The next run on the same file finds them in the lake by
file and row number, so it does not matter where batches begin.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from warmup_lib.ingest.outcome import Kept, Quarantined
from warmup_lib.ingest.reader import as_table
from warmup_lib.lake import Lake
from warmup_lib.tables import QUARANTINE

BUFFERED_BYTES = 64 * 1024 * 1024
"""Rows of all days together that wait to be written, in bytes (see `Kept.weight`)."""

_QUARANTINE_ROWS = 50_000


class RequestWriter:
    """Appends rows to `requests`, one part a day and batch."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows: dict[date, list[tuple[Any, ...]]] = defaultdict(list)
        self._weights: dict[date, int] = defaultdict(int)
        self._total = 0

    def add(self, row: Kept) -> None:
        """Take a row; the heaviest day is written once all days together are too heavy."""
        self._rows[row.day].append(row.values)
        self._weights[row.day] += row.weight
        self._total += row.weight
        if self._total >= BUFFERED_BYTES:
            self._write(max(self._weights, key=lambda day: (self._weights[day], day)))

    def flush(self) -> None:
        """Write what is left."""
        for day in sorted(self._rows):
            self._write(day)

    def _write(self, day: date) -> None:
        self._lake.append("requests", {"day": day.isoformat()}, as_table(self._rows.pop(day)))
        self._total -= self._weights.pop(day)


class QuarantineWriter:
    """Replaces what `quarantine` holds of a file.

    Args:
        lake: The lake.
        source: Digest of the file.
        dialect: Format it is read as.
        at: Now.
    """

    def __init__(self, lake: Lake, source: str, dialect: str, at: datetime) -> None:
        self._lake = lake
        self._partition = {"source": source}
        self._dialect = dialect
        self._at = at
        self._rows: list[Quarantined] = []
        # What a stopped run found carries its time, so the same rows would be added again.
        lake.drop("quarantine", self._partition)

    def add(self, row: Quarantined) -> None:
        """Take a row."""
        self._rows.append(row)
        if len(self._rows) == _QUARANTINE_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is left."""
        if not self._rows:
            return
        columns = {
            "position": [r.position for r in self._rows],
            "byte_offset": [r.offset for r in self._rows],
            "bytes": [r.size for r in self._rows],
            "reason": [r.reason.value for r in self._rows],
            "field": [r.field for r in self._rows],
            "dialect": [self._dialect] * len(self._rows),
            "ingested_at": [self._at] * len(self._rows),
        }
        self._rows.clear()
        table = pa.Table.from_pydict(columns, schema=QUARANTINE.schema)
        self._lake.append("quarantine", self._partition, table)
