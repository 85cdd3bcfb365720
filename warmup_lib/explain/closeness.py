"""Whether a planned answer was near to a question, and what kept it from serving."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warmup_lib.causes import Cause
from warmup_lib.evidence import Looked
from warmup_lib.explain.fate import fate
from warmup_lib.explain.miss import Miss, Verdict
from warmup_lib.explain.nearest import Near, Nearest
from warmup_lib.explain.standing import Standing
from warmup_lib.keys import key_hash
from warmup_lib.places import ROUNDING

WITHIN = 0.1
"""A nearest entry so far below the threshold could be let in by lowering it; one that is farther
away is the answer to another question."""


class Closeness:
    """Judges answers that are not there by those that are near.

    Args:
        standing: The plan's items.
        nearest: Finds near answers.
        threshold: Returns the cosine that a tenant's answers need.
    """

    def __init__(
        self, standing: Standing, nearest: Nearest, threshold: Callable[[str], float]
    ) -> None:
        self._standing = standing
        self._nearest = nearest
        self._threshold = threshold

    def judge(self, misses: Sequence[Miss]) -> list[Verdict | None]:
        """Return the verdict on each miss; None: no answer is near."""
        found = [self._at_the_time(miss) for miss in misses]
        rest = [n for n, verdict in enumerate(found) if verdict is None]
        nears = self._nearest.of([misses[n] for n in rest])
        for n, near in zip(rest, nears, strict=True):
            found[n] = self._now(misses[n], near)
        return found

    def _at_the_time(self, miss: Miss) -> Verdict | None:
        """Judge by what the gateway's look gave."""
        for look in miss.looks:
            if look.found == "guard_refused":
                return Verdict(Cause.GUARD_REFUSED, _told(look))
            least = look.threshold or self._threshold(miss.asked.tenant)
            close = look.similarity is not None and look.similarity >= least - WITHIN
            if look.found == "below_threshold" and close:
                return Verdict(Cause.BELOW_THRESHOLD, _told(look))
        return None

    def _now(self, miss: Miss, near: Near) -> Verdict | None:
        least = self._threshold(miss.asked.tenant) - ROUNDING
        if near.item is not None and near.same >= least:
            if verdict := fate(near.item, miss, self._standing):
                told = f"similarity={near.same:.4f} {verdict.evidence}"
                return Verdict(verdict.cause, told, verdict.item_id)
            return None
        if near.refused is not None and near.other >= least:
            told = f"similarity={near.other:.4f} threshold={least + ROUNDING:.4f}"
            return Verdict(Cause.GUARD_REFUSED, told, near.refused.item_id)
        if near.item is not None and near.same >= least - WITHIN:
            told = f"similarity={near.same:.4f} threshold={least + ROUNDING:.4f}"
            return Verdict(Cause.BELOW_THRESHOLD, told, near.item.item_id)
        return None


def _told(look: Looked) -> str:
    parts = [f"{name}={value:.4f}" for name, value in _figures(look) if value is not None]
    if look.nearest is not None:
        parts.append(f"nearest={key_hash(look.nearest)}")
    return " ".join(parts) or "as the gateway says"


def _figures(look: Looked) -> Sequence[tuple[str, float | None]]:
    return (("similarity", look.similarity), ("threshold", look.threshold))
