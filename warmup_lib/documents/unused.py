"""What of the user's lists no plan uses, and why: nothing of a list is left out silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from warmup_lib.documents.lists import Listing, ReadList

BEYOND, COLDER, EMPTY = "beyond_limit", "colder_intent", "empty_list"
REPEATED, OTHER_ANSWER = "repeated", "other_answer"

_SAYS = {
    BEYOND: "{count} beyond its limit of {first:,}:",
    COLDER: "{count} beyond its limit of {hottest:,}, those of the intents least asked for:",
    REPEATED: "{count} like an earlier row:",
    OTHER_ANSWER: "{count} with another answer to an earlier row's request, whose answer counts:",
    EMPTY: "the list is empty, nothing of it is planned",
}
_NAMED = ("tenant", "response_digest", "head_digest", "intent")


class Unused:
    """What is not used, by list and reason: how many rows, and the line of the first one."""

    def __init__(self, lists: Sequence[tuple[Listing, ReadList]]) -> None:
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
        """Return the rows that are not used, by reason; of empty lists, how many there are."""
        counts: Counter[str] = Counter()
        for (_, why), (count, _) in self._found.items():
            counts[why] += count or 1
        return dict(sorted(counts.items()))

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for each list and reason."""
        return tuple(
            f"plan.sources.{of.name}: {_says(of, why, count)}"
            + (" not used" if count else "")
            + (f" (the first in line {line:,})" if line else "")
            for (of, why), (count, line) in self._found.items()
        )


def _says(of: Listing, why: str, count: int) -> str:
    rows = f"{count:,} row{'s' * (count > 1)}"
    return _SAYS[why].format(count=rows, first=of.first or 0, hottest=of.hottest or 0)
