"""What of the user's lists no plan uses, and what may not be meant: none of it goes untold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from warmup_lib.documents.lists import Listing, ReadList

BEYOND, COLDER, EMPTY = "beyond_limit", "colder_intent", "empty_list"
REPEATED, OTHER_ANSWER, REDACTED = "repeated", "other_answer", "redacted"
TENANT, MODEL, FIELD = "unknown_tenant", "unknown_model", "unknown_field"

_SAYS = {
    BEYOND: "{count} beyond its limit of {first:,}:",
    COLDER: "{count} beyond its limit of {hottest:,}, those of the intents least asked for:",
    REPEATED: "{count} like an earlier row:",
    OTHER_ANSWER: "{count} with another answer to an earlier row's request, whose answer counts:",
    REDACTED: "{count} in which personal data was redacted:",
    TENANT: "{count} of a tenant that no logged request is of",
    MODEL: "{count} of a model that no logged request names, so no host may serve it",
    FIELD: "{count} with a field that has no meaning and is ignored",
    EMPTY: "the list is empty, nothing of it is planned",
}
_USED = {TENANT, MODEL, FIELD}
_NAMED = ("tenant", "response_digest", "head_digest", "intent")


class Unused:
    """What is not used or doubtful, by list and reason: how many rows, and where the first one is.

    Args:
        lists: What was read.
        tenants: Those that the log knows; with none of them nothing is called unknown.
        models: Those that the log knows.
    """

    def __init__(
        self,
        lists: Sequence[tuple[Listing, ReadList]],
        tenants: Collection[str] = (),
        models: Collection[str] = (),
    ) -> None:
        self._found: dict[tuple[Listing, str], tuple[int, int]] = {}
        answers: dict[tuple[str, str], str] = {}
        for of, read in lists:
            if read.beyond:
                self._found[of, BEYOND] = (read.beyond, read.beyond_from)
            elif not read.rows:
                self._found[of, EMPTY] = (0, 0)
            if of.hottest is not None and len(read.rows) > of.hottest:
                self._found[of, COLDER] = (len(read.rows) - of.hottest, 0)
            self._doubled(of, read.rows, answers)
            for line in read.strange:
                self._add(of, FIELD, line)
            for row in read.rows:
                self._doubt(of, row, tenants, models)

    def _doubt(
        self,
        of: Listing,
        row: Mapping[str, Any],
        tenants: Collection[str],
        models: Collection[str],
    ) -> None:
        if row["redacted"]:
            self._add(of, REDACTED, row["position"])
        if tenants and row["tenant"] not in tenants:
            self._add(of, TENANT, row["position"])
        elif models and row["model"] not in models:
            self._add(of, MODEL, row["position"])

    def _doubled(
        self,
        of: Listing,
        rows: Sequence[Mapping[str, Any]],
        answers: dict[tuple[str, str], str],
    ) -> None:
        seen = set()
        for row in rows:
            named = tuple(row[name] for name in _NAMED)
            asked, answer = (row["tenant"], row["response_digest"]), row["response"]
            if answer and answers.setdefault(asked, answer) != answer:
                self._add(of, OTHER_ANSWER, row["position"])
            elif named in seen:
                self._add(of, REPEATED, row["position"])
            seen.add(named)

    def _add(self, of: Listing, why: str, line: int) -> None:
        count, first = self._found.get((of, why), (0, line))
        self._found[of, why] = (count + 1, first)

    def facts(self) -> dict[str, int]:
        """Return how many rows there are of each reason; of empty lists, how many lists."""
        counts: Counter[str] = Counter()
        for (_, why), (count, _) in self._found.items():
            counts[why] += count or 1
        return dict(sorted(counts.items()))

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for each list and reason."""
        return tuple(
            f"plan.sources.{of.name}: {_says(of, why, count)}"
            + (" not used" if count and why not in _USED else "")
            + (f" (the first in line {line:,})" if line else "")
            for (of, why), (count, line) in self._found.items()
        )


def _says(of: Listing, why: str, count: int) -> str:
    rows = f"{count:,} row{'s' * (count > 1)}"
    return _SAYS[why].format(count=rows, first=of.first or 0, hottest=of.hottest or 0)
