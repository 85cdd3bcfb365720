"""JSON lines as a stream: bounded memory, whatever the bytes are."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import Any

import orjson

from warmup_lib.ingest.outcome import Raw, Reason

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

MAX_LINE = 16 * 1024 * 1024
"""Longer lines are quarantined without being read into memory, in bytes."""

DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, ZstdError)
"""What reading a compressed file raises that breaks off, or is not what it says it is."""

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1024 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


def decompressed(handle: BufferedIOBase, magic: bytes) -> BufferedIOBase:
    """Return a file's content as a stream; its first bytes tell whether it is compressed."""
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=handle)
    if magic.startswith(_ZSTD):
        return ZstdFile(handle)
    return handle


def read_lines(
    stream: BufferedIOBase, decode: Callable[[bytes], Any] = orjson.loads
) -> Iterator[Raw]:
    """Yield the rows of JSON lines; empty lines are no rows.

    A compressed stream that breaks off or is damaged ends with one row that says so.

    Args:
        stream: The lines.
        decode: Returns a line's value; raises what `orjson.loads` does.
    """
    position = offset = 0
    while True:
        try:
            line, size = _next_line(stream)
        except EOFError:
            yield Raw(position + 1, offset, None, reason=Reason.TRUNCATED)
            return
        except DAMAGED:
            yield Raw(position + 1, offset, None, reason=Reason.DAMAGED)
            return
        if not size:
            return
        if offset == 0:
            line = line.removeprefix(_BOM)
        if line and not line.isspace():
            position += 1
            yield _decoded(line, position, offset, size, decode)
        offset += size


def _next_line(stream: BufferedIOBase) -> tuple[bytes, int]:
    """Return a line and its length; of a line that is too long only as much as shows that."""
    line = stream.readline(MAX_LINE + 1)
    size = len(line)
    if size > MAX_LINE and not line.endswith(b"\n"):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(_CHUNK)
            size += len(rest)
    return line, size


def _decoded(
    line: bytes, position: int, offset: int, size: int, decode: Callable[[bytes], Any]
) -> Raw:
    if size > MAX_LINE:
        return Raw(position, offset, size, reason=Reason.TOO_LONG)
    try:
        value = decode(line)
    except orjson.JSONDecodeError:
        return Raw(position, offset, size, reason=_fault(line))
    return Raw(position, offset, size, value)


def _fault(line: bytes) -> Reason:
    if b"\0" in line:
        return Reason.NUL_BYTE
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return Reason.INVALID_UTF8
    return Reason.INVALID_JSON
