"""The stage `ingest`: log files into `requests` and `quarantine`.

A file that was read to its end is noted in the manifest of its quarantine partition, which every
file has, be it empty. Such a file adds nothing when it comes again, under any name.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.ingest.dialects import foreign, named, recognised
from warmup_lib.ingest.logfile import LogFile
from warmup_lib.ingest.logrow import Dialect
from warmup_lib.ingest.outcome import Quarantined, Reason
from warmup_lib.ingest.prepare import Preparer
from warmup_lib.ingest.reader import Tally, judged
from warmup_lib.ingest.seen import Seen, Verdict, stored_in
from warmup_lib.ingest.store import QuarantineWriter, RequestWriter
from warmup_lib.ingest.times import Clock
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport

_NOTE = "ingested"
_PROGRESS_ROWS = 2000
_NAMED_FILES = 3


def run(
    lake: Lake,
    files: Sequence[Path],
    dialect: str,
    config: Config,
    keys: Keys,
    progress: Progress,
    as_of: datetime | None = None,
) -> StageReport:
    """Add the requests of log files to the lake.

    Args:
        lake: The lake.
        files: Log files, each compressed or not.
        dialect: Name of their format, or `auto`, which tells it for each file.
        config: Settings.
        keys: Builder of the identities.
        progress: Told the bytes read.
        as_of: Now, for telling wrong timestamps; the real clock when absent.

    Returns:
        The report. `rows_read` is `rows_kept` + `rows_quarantined` + `duplicates`.

    Raises:
        InputDataError: A file can't be read, or the format is unknown.
    """
    started = time.perf_counter()
    wanted = named(dialect)
    sizes = [_size(path) for path in files]
    clock = Clock(config.zone, as_of or datetime.now(UTC))
    with stored_in(lake) as load, Seen(load) as seen:
        ingest = _Ingest(lake, config, keys, clock, seen, progress, sum(sizes))
        for path, size in zip(files, sizes, strict=True):
            ingest.take(path, wanted)
            ingest.bytes_before += size
    return ingest.report(len(files), time.perf_counter() - started)


class _Ingest:
    """One run over several files."""

    def __init__(
        self,
        lake: Lake,
        config: Config,
        keys: Keys,
        clock: Clock,
        seen: Seen,
        progress: Progress,
        total: int,
    ) -> None:
        self._lake = lake
        self._config = config
        self._keys = keys
        self._clock = clock
        self._seen = seen
        self._progress = progress
        self._total = total
        self._tally = Tally()
        self._days: set[str] = set()
        self._again: list[Path] = []
        self._resumed: list[Path] = []
        self._empty: list[Path] = []
        self._foreign: list[Path] = []
        self.bytes_before = 0

    def take(self, path: Path, wanted: Dialect | None) -> None:
        """Add one file."""
        file = LogFile.open(path)
        manifest = self._lake.manifest("quarantine", {"source": file.source})
        note: dict[str, Any] = manifest.meta.get(_NOTE, {}) if manifest else {}
        if wanted is None and foreign(file.rows()):
            self._foreign.append(path)
            return
        known = wanted or recognised(file.rows())
        if note.get("dialect") == known.name:
            self._tally.add(Tally(read=note["rows_read"], duplicates=note["rows_read"]))
            self._again.append(path)
            return
        tally = self._read(file, known)
        if not tally.read:
            self._empty.append(path)
        self._tally.add(tally)
        facts = {
            "dialect": known.name,
            "rows_read": tally.read,
            "rows_kept": tally.kept,
            "rows_quarantined": tally.quarantined,
            "duplicates": tally.duplicates,
        }
        self._lake.annotate("quarantine", {"source": file.source}, {_NOTE: facts})

    def _read(self, file: LogFile, dialect: Dialect) -> Tally:
        tally = Tally()
        requests = RequestWriter(self._lake)
        quarantine = QuarantineWriter(self._lake, file.source, dialect.name, self._clock.as_of)
        preparer = Preparer(dialect, file.source, self._clock, self._config, self._keys)
        resumed = False
        for found in judged(file, preparer, self._seen):
            if isinstance(found, Quarantined):
                tally.count_quarantined(found)
                quarantine.add(found)
            elif found[1] is Verdict.RETRY:
                tally.count_duplicate()
            else:
                row, verdict = found
                tally.count_kept(row)
                self._days.add(row.day.isoformat())
                if verdict is Verdict.NEW:
                    requests.add(row)
                else:
                    resumed = True
            if tally.read % _PROGRESS_ROWS == 0:
                self._progress("bytes read", self.bytes_before + file.done(), self._total)
        requests.flush()
        quarantine.flush()
        if resumed:
            self._resumed.append(file.path)
        return tally

    def report(self, files: int, seconds: float) -> StageReport:
        """Return what the run did."""
        tally = self._tally
        self._progress("bytes read", self._total, self._total)
        return StageReport(
            stage="ingest",
            rows_in=tally.read,
            rows_out=tally.kept,
            seconds=seconds,
            notes=tuple(self._notes()),
            facts={
                "rows_read": tally.read,
                "rows_kept": tally.kept,
                "rows_quarantined": tally.quarantined,
                "duplicates": tally.duplicates,
                "days": sorted(self._days),
                "files": files,
                "files_known": len(self._again),
                "files_skipped": len(self._foreign),
                "redacted": tally.redacted,
                "warmup_rows": tally.warmup,
                "quarantine": dict(sorted(tally.reasons.items())),
            },
        )

    def _notes(self) -> list[str]:
        notes = []
        if self._again:
            notes.append(f"ingested before, nothing added: {_listed(self._again)}")
        if self._resumed:
            notes.append(f"an ingest that was stopped is completed: {_listed(self._resumed)}")
        if self._empty:
            notes.append(f"holds no rows: {_listed(self._empty)}")
        if self._foreign:
            notes.append(f"skipped, no line is of a known log format: {_listed(self._foreign)}")
        if count := self._clock.without_zone:
            notes.append(f"{count} times without zone were taken as {self._config.timezone}")
        if count := self._tally.reasons[Reason.PROMPT_NOT_LOGGED]:
            notes.append(
                f"{count} rows have no prompt: the gateway does not log it "
                "(LiteLLM: set `store_prompts_in_spend_logs: true`)"
            )
        return notes


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputDataError(f"{path} can't be read: {error.strerror}") from None


def _listed(paths: Sequence[Path]) -> str:
    names = ", ".join(p.name for p in paths[:_NAMED_FILES])
    more = len(paths) - _NAMED_FILES
    return f"{names} and {more} more" if more > 0 else names
