"""The confusion table: true causes against those that were found, and how good that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NONE = "none"
"""In the table: no miss, or none that was found."""


@dataclass(frozen=True)
class Confusion:
    """What was true against what was found.

    Attributes:
        pairs: Counts of (true, found) causes, one a request and layer.
        requests: In how many requests each cause was injected.
    """

    pairs: Counter[tuple[str, str]]
    requests: Counter[str]

    @property
    def causes(self) -> list[str]:
        """All causes that are true of something or were found for something."""
        return sorted({name for pair in self.pairs for name in pair} - {NONE})

    def precision(self, cause: str) -> float:
        """Share of what was found as a cause that is of this cause."""
        found = sum(n for (_, got), n in self.pairs.items() if got == cause)
        return self.pairs[cause, cause] / found if found else 1.0

    def recall(self, cause: str) -> float:
        """Share of what is of a cause that was found as such."""
        true = self._misses(cause)
        return self.pairs[cause, cause] / true if true else 1.0

    def plus(self, other: Confusion) -> Confusion:
        """Return both runs together."""
        return Confusion(self.pairs + other.pairs, self.requests + other.requests)

    def _misses(self, cause: str) -> int:
        return sum(n for (want, _), n in self.pairs.items() if want == cause)

    def table(self) -> str:
        """Return the table in Markdown: one line a true cause, with what was found instead."""
        lines = [
            "| true cause | requests | misses | right | found as another | precision | recall |",
            "|---|---:|---:|---:|---|---:|---:|",
        ]
        for cause in self.causes:
            wrong = {g: n for (w, g), n in self.pairs.items() if w == cause and g != cause}
            told = ", ".join(f"{name} {n}" for name, n in sorted(wrong.items())) or "-"
            lines.append(
                f"| {cause} | {self.requests[cause]} | {self._misses(cause)} "
                f"| {self.pairs[cause, cause]} | {told} "
                f"| {self.precision(cause):.3f} | {self.recall(cause):.3f} |"
            )
        false = {g: n for (w, g), n in self.pairs.items() if w == NONE and g != NONE}
        told = ", ".join(f"{name} {n}" for name, n in sorted(false.items())) or "-"
        sound = self.pairs[NONE, NONE]
        healthy = self.requests[NONE]
        lines.append(f"| (no fault) | {healthy} | {sum(false.values())} | {sound} | {told} | | |")
        return "\n".join(lines)


def compare(
    labels: Mapping[str, Mapping[str, str]], found: Iterable[Mapping[str, Any]]
) -> Confusion:
    """Return the table of labels and rows of `causes`.

    A label for every layer (`*`) is of each layer that misses; where none does, it was not found.
    Layers that a labelled request's label does not name are not judged.

    Args:
        labels: Request -> layer, with its tier -> cause.
        found: Rows with request_id, layer, tier and cause.
    """
    by_request: dict[str, list[tuple[str, str]]] = {}
    for row in found:
        place = row["layer"] if row["tier"] is None else f"{row['layer']}.{row['tier'].lower()}"
        by_request.setdefault(row["request_id"], []).append((place, row["cause"]))
    pairs: Counter[tuple[str, str]] = Counter()
    for ident, label in labels.items():
        got = by_request.get(ident, [])
        for layer, cause in got:
            true = label.get(layer, label.get("*")) if label else NONE
            if true is not None:
                pairs[true, cause] += 1
        layers = {layer for layer, _ in got}
        for layer, cause in label.items():
            if layer not in layers and not (layer == "*" and got):
                pairs[cause, NONE] += 1
        if not label and not got:
            pairs[NONE, NONE] += 1
    requests = Counter(
        cause for label in labels.values() for cause in (set(label.values()) or {NONE})
    )
    return Confusion(pairs, requests)
