"""Reads the headers of safetensors files, never their data, and finds what is wrong inside one.

A file is 8 bytes with the length of the header, the header as JSON, and the tensors one after the
other: each says its type, its shape and where its bytes begin and end after the header.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from stat import S_ISREG
from typing import Any

from warmup_lib.preflight.findings import Finding, error, shape_of

COPY_AGAIN = "copy the file again from where it came"

_LONGEST_HEADER = 100_000_000  # the format's own limit
_MOST_SIDES = 64  # as NumPy and PyTorch have it
_LFS = b"version "
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64,
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """One tensor as its file's header has it; `start` and `end` count from the header's end."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass
class Header:
    """What one file says of itself.

    Attributes:
        file: Its path from the model folder.
        tensors: By name.
        bytes_read: Bytes read to know this.
        findings: What is wrong inside the file.
    """

    file: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    bytes_read: int = 0
    findings: list[Finding] = field(default_factory=list)


def read_header(folder: Path, file: str) -> Header:
    """Return the header of one file; what can't be read is a finding.

    Raises:
        OSError: The file can't be opened or read.
    """
    header = Header(file)
    path = folder / file
    status = path.stat()
    if not S_ISREG(status.st_mode):
        # To open a named pipe would wait for somebody to write into it.
        header.findings.append(_of_file(file, "a file", "a folder, pipe or device"))
        return header
    size = status.st_size
    # Unbuffered: a buffer would read on into the data.
    with path.open("rb", buffering=0) as source:
        first = source.read(8)
        header.bytes_read += len(first)
        length = int.from_bytes(first, "little")
        if problem := _not_safetensors(first, length, size):
            header.findings.append(_of_file(file, *problem))
            return header
        raw = _exactly(source, length)
        header.bytes_read += len(raw)
    try:
        header.tensors = {
            name: _tensor(name, entry)
            for name, entry in _parsed(raw).items()
            if name != "__metadata__"
        }
    except _Twice as twice:
        found = "the name twice in one header"
        header.findings.append(error(file, str(twice), "each name once", found, COPY_AGAIN))
        return header
    except (ValueError, KeyError, TypeError, RecursionError):
        header.findings.append(
            _of_file(file, "a header of tensors with type, shape and place", "an unreadable header")
        )
        return header
    header.findings += _inside(header, size - 8 - length)
    return header


class _Twice(ValueError):
    """A name is in a header twice."""


def _not_safetensors(first: bytes, length: int, size: int) -> tuple[str, str, str] | None:
    """Return (expected, found, fix) of a file whose header is not all there; None: it is."""
    if first == _LFS:
        return "tensors", "a Git LFS pointer", "run `git lfs pull` in the folder"
    if len(first) < 8 or length > size - 8:
        whole = f"a header of {length:,} bytes" if 0 < length <= _LONGEST_HEADER else "a header"
        return whole, f"a file of {size:,} bytes, cut off in its header", COPY_AGAIN
    if length > _LONGEST_HEADER:
        return "a safetensors header", "something else", COPY_AGAIN
    return None


def _of_file(file: str, expected: str, found: str, fix: str = COPY_AGAIN) -> Finding:
    return error(file, None, expected, found, fix)


def _exactly(source: Any, length: int) -> bytes:
    parts = []
    while length and (part := source.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _parsed(raw: bytes) -> dict[str, Any]:
    parsed = json.loads(raw, object_pairs_hook=_unique)
    if not isinstance(parsed, dict):
        raise TypeError("no object")
    return parsed


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that is there twice, of which JSON would keep the last."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise _Twice(name)
        made[name] = value
    return made


def _tensor(name: str, entry: dict[str, Any]) -> Tensor:
    start, end = _counts(entry["data_offsets"])
    shape = _counts(entry["shape"])
    if end < start or len(shape) > _MOST_SIDES or not isinstance(entry["dtype"], str):
        raise ValueError("no type, shape and place")
    return Tensor(name, entry["dtype"], shape, start, end)


def _counts(listed: Any) -> tuple[int, ...]:
    """Return a list of counts of 64 bits; what JSON has beside them reads as one too easily."""
    if not isinstance(listed, list):
        raise TypeError("no list")
    # `True` is an int as well.
    if not all(type(one) is int and 0 <= one < 2**63 for one in listed):
        raise ValueError("no counts")
    return tuple(listed)


def _inside(header: Header, data: int) -> list[Finding]:
    """Find tensors whose bytes don't fit their shape, their neighbours or the file."""
    found: list[Finding] = []
    ordered = sorted(header.tensors.values(), key=lambda t: (t.start, t.end))
    cut = [t for t in ordered if t.end > data]
    if cut:
        missing = max(t.end for t in cut) - data
        found.append(
            error(
                header.file,
                cut[0].name,
                f"{max(t.end for t in cut):,} bytes of tensors",
                f"the file is cut off: {data:,} bytes, {missing:,} are missing, which "
                f"{_tensors(len(cut))} reach into",
                COPY_AGAIN,
            )
        )
    found += [
        error(
            header.file,
            t.name,
            f"{wanted:,} bytes for {t.dtype} {shape_of(t.shape)}",
            f"{t.end - t.start:,} bytes",
            COPY_AGAIN,
        )
        for t in ordered
        if (wanted := _bytes_of(t)) is not None and wanted != t.end - t.start
    ]
    return found + _placed(header.file, ordered, data)


def _placed(file: str, ordered: list[Tensor], data: int) -> list[Finding]:
    """Find overlaps and holes: tensors lie one after the other and fill the file."""
    found, end = [], 0
    for tensor in ordered:
        if tensor.start != end:
            what = "overlaps the tensor before it" if tensor.start < end else "leaves a hole"
            place = f"begins at byte {tensor.start:,} and {what}"
            found.append(error(file, tensor.name, f"a start at byte {end:,}", place, COPY_AGAIN))
        end = max(end, tensor.end)
    if end < data:
        found.append(
            error(
                file,
                None,
                f"{end:,} bytes of tensors",
                f"{data - end:,} bytes more, which belong to none",
                COPY_AGAIN,
            )
        )
    return found


def _bytes_of(tensor: Tensor) -> int | None:
    """Return the bytes that type and shape ask for; None: the type is not known here."""
    bits = _BITS.get(tensor.dtype)
    return None if bits is None else prod(tensor.shape) * bits // 8


def _tensors(count: int) -> str:
    return f"{count:,} tensor{'s' if count != 1 else ''}"
