"""Retrieval documents: pages in chunks, taken at run time from installed packages or a folder.

A page is one Markdown file, `docs/<tenant>/<page>.md`; each of its chunks begins with a line
`<!-- <page>#<n> -->`, where `<page>#<n>` is the chunk's id and n counts from 1.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CHUNKS = 3
"""Chunks a page: a fixed number, so that chunk ids do not depend on the installed version."""

LIMIT = 4_500
"""Characters of a page that are kept."""


def from_packages(pages: Iterable[str]) -> Iterable[tuple[str, list[str]]]:
    """Yield each page's chunks, cut from the docstring of the object it is named after.

    Raises:
        LookupError: when no installed package has an object of that name with a docstring.
    """
    for page in pages:
        text = inspect.getdoc(_object(page))
        if not text:
            raise LookupError(f"{page} has no docstring: install the versions in constraints.txt")
        yield page, cut(text[:LIMIT], CHUNKS)


def _object(name: str) -> Any:
    """Return the object of that dotted name, importing as many of its parts as are modules."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:size]))
            for attribute in parts[size:]:
                found = getattr(found, attribute)
        except (ModuleNotFoundError, AttributeError):
            continue
        return found
    raise LookupError(f"{name} is in no installed package: install the project's dependencies")


def cut(text: str, chunks: int) -> list[str]:
    """Cut a text at line ends into that many parts of about equal length, none of them empty."""
    lines = [line for line in text.splitlines() if line.strip()]
    lines += [lines[-1]] * (chunks - len(lines))
    sizes = [len(line) + 1 for line in lines]
    parts: list[list[str]] = [[] for _ in range(chunks)]
    done = 0
    for i, (line, size) in enumerate(zip(lines, sizes, strict=True)):
        part = min(chunks * (done + size // 2) // sum(sizes), chunks - 1)
        # one line at least for each part, whatever the lengths are
        part = max(part, chunks - (len(lines) - i))
        part = min(part, next((p for p in range(chunks) if not parts[p]), chunks - 1))
        parts[part].append(line)
        done += size
    return ["\n".join(part) for part in parts]


def write(folder: Path, pages: Iterable[tuple[str, list[str]]]) -> int:
    """Write every page below `folder` and return how many chunks there are."""
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for page, chunks in pages:
        body = "\n".join(
            f"<!-- {page}#{n} -->\n{chunk.strip()}\n" for n, chunk in enumerate(chunks, 1)
        )
        (folder / f"{page}.md").write_text(body, encoding="utf-8")
        total += len(chunks)
    return total
