"""Rows out of CSV any line of which may be broken: such a line is lost, and no other."""

from __future__ import annotations

import csv
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from warmup_lib.ingest.lines import DAMAGED

_TIME = re.compile(r"""\s*"?\d[\d.:tz+ -]*"?\s*""", re.ASCII | re.IGNORECASE)


def read_rows(stream: Iterable[str], rejected: Counter[str]) -> Iterator[list[str]]:
    """Yield the fields of each row; empty lines are no rows.

    What is between quotes may have line ends. Quotes that nothing closes, or that would take in a
    line which is a row by itself, cost the line that they begin in; the next one is read as ever.

    Args:
        stream: Lines with their ends, of a file that may break off.
        rejected: Counts what is lost, by reason.
    """
    lines = _Lines(stream, rejected)
    width = None
    for line in lines:
        # A line without quotes needs no parser: cutting it is several times faster.
        if '"' in line or len(line) > csv.field_size_limit():
            row = lines.quoted(line, width)
        else:
            bare = line.rstrip("\r\n")
            row = bare.split(",") if bare else []
        if row:
            width = width or len(row)
            yield row


class _Lines:
    """Lines that can be put back."""

    def __init__(self, stream: Iterable[str], rejected: Counter[str]) -> None:
        self._coming = iter(stream)
        self._back: deque[str] = deque()
        self._rejected = rejected

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._back:
            return self._back.popleft()
        try:
            return next(self._coming)
        except DAMAGED:
            self._rejected["damaged"] += 1
            self._coming = iter(())
            raise StopIteration from None

    def quoted(self, first: str, width: int | None) -> list[str]:
        """Return the row that begins in a line; an empty one where it is none, which is counted."""
        taken: list[str] = []
        reason = "invalid csv"

        def record() -> Iterator[str]:
            nonlocal reason
            yield first
            reason = "unclosed quote"
            for line in self:
                taken.append(line)
                if _is_row(line, width):
                    return
                yield line

        try:
            # A field has an end here, even if none is written: the reader's largest size.
            return next(csv.reader(record(), strict=True))
        except csv.Error:
            self._rejected[reason] += 1
            self._back.extendleft(reversed(taken))
            return []


def _is_row(line: str, width: int | None) -> bool:
    """Return whether a line by itself has as many fields as a row, and a time or a number."""
    fields = line.rstrip("\r\n").split(",")
    return len(fields) == width and any(_TIME.fullmatch(one) for one in fields)
