"""What a check of a model folder finds, and how a finding reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TRAP = "weight_shards"

Severity = Literal["error", "warning"]

_LONGEST = 500


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

    Texts are kept as `printable` has them: names in a file are whatever its maker chose.
    """

    severity: Severity
    file: str | None
    tensor: str | None
    expected: str
    found: str
    fix: str
    trap: str = TRAP

    def __post_init__(self) -> None:
        for name in ("file", "tensor", "expected", "found", "fix"):
            text = getattr(self, name)
            if text is not None:
                object.__setattr__(self, name, printable(text))

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.tensor) if part) or "the folder"
        return f"{place}: {self.found}, expected {self.expected}; {self.fix}"


def error(file: str | None, tensor: str | None, expected: str, found: str, fix: str) -> Finding:
    """Return a finding because of which a folder must not be loaded."""
    return Finding("error", file, tensor, expected, found, fix)


def printable(text: str) -> str:
    """Return a text with what no terminal or table should get escaped, and cut where it is long.

    Control characters would steer a terminal, lone surrogates can't be written as UTF-8.
    """
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def shape_of(shape: tuple[int, ...]) -> str:
    """Return a shape as it is written."""
    return " x ".join(map(str, shape)) if shape else "a single number"
