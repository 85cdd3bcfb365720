"""Which files of the configured inbox a DAG reads."""

from __future__ import annotations

from pathlib import Path


def inbox_files(inbox: str | None) -> list[Path]:
    """Return the files of a folder, or those that match a glob, sorted by path.

    Names that begin with `.` or `_` are left alone: such files are still being written.

    Args:
        inbox: A folder or glob; None means that no inbox is configured.
    """
    if inbox is None:
        return []
    path = Path(inbox)
    if path.is_dir():
        found = path.iterdir()
    else:
        found = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
    return sorted(p for p in found if p.is_file() and p.name[0] not in "._")
