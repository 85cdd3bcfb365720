"""A log file: its identity and its rows, whatever it is packed in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path

from warmup_lib.errors import InputDataError
from warmup_lib.ingest.lines import decompressed, read_lines
from warmup_lib.ingest.outcome import Raw
from warmup_lib.ingest.parquet import MAGIC, read_parquet

_DIGEST = 32


@dataclass
class LogFile:
    """One file of log rows.

    Attributes:
        path: Where it is.
        size: Its size in bytes.
        source: Digest of its bytes (32 hex digits): the file's identity, under any name.
    """

    path: Path
    size: int
    source: str
    _handle: BufferedIOBase | None = field(default=None, repr=False)

    @classmethod
    def open(cls, path: Path) -> LogFile:
        """Return a file after one pass over its bytes.

        Raises:
            InputDataError: It can't be read.
        """
        try:
            with path.open("rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()[:_DIGEST]
                return cls(path, handle.tell(), digest)
        except OSError as error:
            raise InputDataError(f"{path} can't be read: {error.strerror}") from None

    def rows(self) -> Iterator[Raw]:
        """Yield its rows, compressed or not, JSON lines or Parquet: its first bytes tell which."""
        with self.path.open("rb") as handle:
            self._handle = handle
            magic = handle.read(len(MAGIC))
            handle.seek(0)
            if magic == MAGIC:
                yield from read_parquet(handle)
            else:
                with decompressed(handle, magic) as stream:
                    yield from read_lines(stream)

    def done(self) -> int:
        """Return about how many of its bytes were read."""
        handle = self._handle
        return 0 if handle is None or handle.closed else handle.tell()
