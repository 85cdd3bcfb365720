"""What was measured so far, in one JSON file, so that a run that was broken off can go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any


class Kept:
    """The measured parts by name.

    Args:
        file: Where they are kept.
        commit: What is measured now.
    """

    def __init__(self, file: Path, commit: str) -> None:
        self._file = file
        self._commit = commit
        self.parts: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}

    def part(self, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return a part, measured now unless it was before.

        Args:
            name: Of the part.
            measure: Measures it.
        """
        if name not in self.parts:
            begun = perf_counter()
            found = measure()
            took = {
                "commit": self._commit,
                "ended": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(perf_counter() - begun, 1),
            }
            self.parts[name] = {**found, **took}
            staged = self._file.with_suffix(".new")
            staged.write_text(json.dumps(self.parts), encoding="utf-8")
            staged.replace(self._file)
        part: dict[str, Any] = self.parts[name]
        return part
