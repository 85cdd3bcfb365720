"""What a stage tells its caller, and how long work shows that it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class StageReport:
    """The result of one stage run.

    Attributes:
        stage: The stage's name.
        rows_in: Rows read.
        rows_out: Rows in the partition that was replaced.
        seconds: Wall time.
        notes: Sentences for the user; never content of a request.
        facts: Counts and ids for `--json`, DAGs and tests; JSON types only.
    """

    stage: str
    rows_in: int
    rows_out: int
    seconds: float
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


class Progress(Protocol):
    """Where long work says how far it is. The command line draws a bar, a DAG logs a line."""

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Say that `done` of `total` (None: unknown) units of `what` are finished."""


def silent(what: str, done: int, total: int | None) -> None:
    """Show nothing."""
