"""Why a plan left something out, as its `left_out` table says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from warmup_lib.causes import Cause
from warmup_lib.explain.miss import Miss, Verdict
from warmup_lib.lake import Lake
from warmup_lib.tables import STR, reason_word

COVERED = "covered"
_BUDGET = "below_budget"
_SHORT = "short_head"

Place = tuple[str, str, str]
"""Layer, tenant and digest."""

_REASONS = """
SELECT layer, tenant, digest, MIN(reason) AS reason
FROM left_out INNER JOIN wanted USING (layer, tenant, digest)
WHERE plan_id = $plan
GROUP BY layer, tenant, digest
"""


class LeftOut:
    """The `left_out` rows of one plan.

    Args:
        lake: The lake.
        plan_id: The plan.
    """

    def __init__(self, lake: Lake, plan_id: str) -> None:
        self._lake = lake
        self._plan_id = plan_id
        self._asked: dict[Place, str | None] = {}

    def of(self, places: Iterable[Place]) -> dict[Place, str]:
        """Return the reasons of those that were left out; each place is looked up once."""
        wanted = set(places)
        if new := sorted(place for place in wanted if place not in self._asked):
            self._asked |= dict.fromkeys(new) | self._read(new)
        return {place: reason for place in wanted if (reason := self._asked[place]) is not None}

    def _read(self, places: Sequence[Place]) -> dict[Place, str]:
        columns = zip(*places, strict=True)
        wanted = pa.table([pa.array(c, STR) for c in columns], ["layer", "tenant", "digest"])
        connection = self._lake.sql()
        try:
            connection.register("wanted", wanted)
            rows = connection.sql(_REASONS, params={"plan": self._plan_id}).fetchall()
        finally:
            connection.close()
        return {(layer, tenant, digest): reason for layer, tenant, digest, reason in rows}

    def reasons(self, misses: Sequence[tuple[Miss, Sequence[str]]]) -> list[str | None]:
        """Return why what each miss wanted was left out; None: it is not among what was."""
        places = [
            [(miss.layer, miss.asked.tenant, digest) for digest in wanted]
            for miss, wanted in misses
        ]
        known = self.of([place for several in places for place in several])
        return [next((known[p] for p in several if p in known), None) for several in places]


def by_reason(reason: str | None, told: str = "") -> Verdict | None:
    """Return the verdict on something that was left out for a reason; None: for none.

    Args:
        reason: Why, as in the `left_out` table.
        told: What else shows it.
    """
    if reason is None:
        return None
    word = reason_word(reason)
    causes = {_BUDGET: Cause.BELOW_BUDGET, _SHORT: Cause.SUB_BLOCK}
    return Verdict(causes.get(word, Cause.LEFT_OUT), " ".join(filter(None, [_plain(reason), told])))


def _plain(reason: str) -> str:
    return f"left_out={' '.join(reason.split())[:100]}"
