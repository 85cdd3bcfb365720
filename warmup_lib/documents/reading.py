"""Reads chunks out of a folder of Markdown pages or a JSON-lines file; what is bad has a reason."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import fsspec

from warmup_lib.errors import ConfigError

_MARK = re.compile(r"^<!-- (\S+) -->[ \t]*$", re.MULTILINE)
_FIELDS = ("chunk_id", "document", "text")


class Reason(StrEnum):
    """Why a page, a line or a chunk can't be used."""

    UNREADABLE = "unreadable"
    NOT_UTF8 = "not_utf8"
    NO_CHUNK = "no_chunk"
    EMPTY_CHUNK = "empty_chunk"
    NOT_JSON = "not_json"
    MISSING_FIELD = "missing_field"
    DOUBLED_ID = "doubled_id"


@dataclass(frozen=True)
class Chunk:
    """A piece of a document, under the id by which requests name it."""

    chunk_id: str
    document: str
    text: str


@dataclass(frozen=True)
class Bad:
    """What can't be used, and where it is: a page, or a line of a file, from 1."""

    reason: Reason
    place: str


def read_documents(path: str) -> Iterator[Chunk | Bad]:
    """Yield what is at a path, in the order of names and lines.

    A folder holds Markdown pages (`*.md`, below it too), in which a line `<!-- ID -->` begins each
    chunk; what stands before the first one belongs to none. A file holds JSON lines with
    `chunk_id`, `document` and `text`, and may be compressed.

    Args:
        path: A folder or file, local or of an object store that fsspec knows.

    Raises:
        ConfigError: There is nothing there, or no way to it.
    """
    try:
        fs, root = fsspec.core.url_to_fs(path)
        folder, there = fs.isdir(root), fs.exists(root)
    except (ValueError, ImportError, OSError) as error:
        raise ConfigError(
            f"the documents at '{path}' can't be reached: {type(error).__name__}"
        ) from None
    if not there:
        raise ConfigError(f"there are no documents at '{path}': no such folder or file")
    yield from _pages(fs, str(root)) if folder else _lines(path)


def _pages(fs: Any, root: str) -> Iterator[Chunk | Bad]:
    for file in sorted(str(f) for f in fs.find(root) if str(f).endswith(".md")):
        document = posixpath.relpath(file, root).removesuffix(".md")
        try:
            text = fs.cat_file(file).decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            yield Bad(Reason.NOT_UTF8, document)
        except OSError:
            yield Bad(Reason.UNREADABLE, document)
        else:
            yield from cut(document, text)


def cut(document: str, text: str) -> Iterator[Chunk | Bad]:
    """Yield the chunks of one Markdown page."""
    marks = list(_MARK.finditer(text))
    if not marks:
        yield Bad(Reason.NO_CHUNK, document)
        return
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        body = text[mark.end() : end].strip()
        yield Chunk(mark[1], document, body) if body else Bad(Reason.EMPTY_CHUNK, document)


def _lines(path: str) -> Iterator[Chunk | Bad]:
    number = 0
    try:
        with fsspec.open(path, "rb", compression="infer") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _chunk(line, f"line {number}")
    except (OSError, EOFError):  # a compressed file that ends in the middle
        yield Bad(Reason.UNREADABLE, f"after line {number}")


def _chunk(line: bytes, place: str) -> Chunk | Bad:
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        return Bad(Reason.NOT_UTF8, place)
    except (ValueError, RecursionError):
        return Bad(Reason.NOT_JSON, place)
    found = [row.get(name) for name in _FIELDS] if isinstance(row, dict) else []
    fields = [field for field in found if isinstance(field, str) and field.strip()]
    if len(fields) < len(_FIELDS):
        return Bad(Reason.MISSING_FIELD, place)
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return Bad(Reason.NOT_UTF8, place)
    chunk_id, document, text = fields
    return Chunk(chunk_id, document, text.strip())
