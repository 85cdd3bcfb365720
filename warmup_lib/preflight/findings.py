"""What a check of a model folder finds, and how a finding reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TRAP = "weight_shards"

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a model folder.

    Attributes:
        severity: `error`: it can't be loaded, or loads wrong. `warning`: hosts cope with it.
        file: The file at fault, from the folder; None: the folder as a whole.
        tensor: The tensor at fault; None: the file as a whole.
        expected: What should be there.
        found: What is there.
        fix: What to do about it.
        trap: The trap it belongs to.
    """

    severity: Severity
    file: str | None
    tensor: str | None
    expected: str
    found: str
    fix: str
    trap: str = TRAP

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.tensor) if part) or "the folder"
        return f"{place}: {self.found}, expected {self.expected}; {self.fix}"


def error(file: str | None, tensor: str | None, expected: str, found: str, fix: str) -> Finding:
    """Return a finding because of which a folder must not be loaded."""
    return Finding("error", file, tensor, expected, found, fix)


def shape_of(shape: tuple[int, ...]) -> str:
    """Return a shape as it is written."""
    return " x ".join(map(str, shape)) if shape else "a single number"
