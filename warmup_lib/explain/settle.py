"""Which cause goes first: from what went round the caches to what nobody planned.

The order is that of docs/causes.md: whoever did not look, or looked in a wrong place, would have
missed whatever was warm; only then it matters what became of the item; only then why there was
none.
"""

from __future__ import annotations

from collections.abc import Sequence

from warmup_lib.causes import Cause
from warmup_lib.explain.fate import fate
from warmup_lib.explain.leftout import LeftOut, by_reason
from warmup_lib.explain.miss import L3, Miss, Verdict
from warmup_lib.explain.misses import Passed
from warmup_lib.explain.places import digests
from warmup_lib.explain.standing import Standing
from warmup_lib.layers.base import PlanItem
from warmup_lib.places import Places


class Settler:
    """Gives misses their causes.

    Args:
        standing: What is known of the plan's items.
        places: Where entries lie.
        left_out: What the plan left out.
    """

    def __init__(self, standing: Standing, places: Places, left_out: LeftOut) -> None:
        self._standing = standing
        self._places = places
        self._left_out = left_out

    def settle(self, misses: Sequence[Miss]) -> list[Verdict]:
        """Return one verdict a miss, in order."""
        wanted = [digests(miss, self._places.keys) for miss in misses]
        found = [self._planned(m, w) for m, w in zip(misses, wanted, strict=True)]
        rest = [n for n, verdict in enumerate(found) if verdict is None]
        reasons = self._left_out.reasons([(misses[n], wanted[n]) for n in rest])
        for n, reason in zip(rest, reasons, strict=True):
            found[n] = by_reason(reason)
        return [v or Verdict(Cause.UNKNOWN, "nothing fits") for v in found]

    def _planned(self, miss: Miss, wanted: Sequence[str]) -> Verdict | None:
        """Return what became of what was planned for a request; None: something was not."""
        if failed := _failed(miss):
            return failed
        items = self._items(miss, wanted)
        for item in items:
            if verdict := fate(item, miss, self._standing):
                return verdict
        return None

    def _items(self, miss: Miss, wanted: Sequence[str]) -> list[PlanItem]:
        if miss.tier == L3:
            return self._standing.of_tier(miss.layer, miss.tier, miss.asked.tenant)
        return [
            item
            for digest in wanted
            for item in self._standing.planned(miss.layer, miss.tier, miss.asked.tenant, digest)
        ]


def passed(one: Passed) -> Verdict:
    """Return why no look was made for a request that asked for none to be left out."""
    told = "looked=none" if one.evidence is not None else "evidence=none of its log has it"
    return Verdict(Cause.BYPASS_MIDDLEWARE, told)


def _failed(miss: Miss) -> Verdict | None:
    errors = [look.error or "error" for look in miss.looks if look.found == "error"]
    if not errors:
        return None
    return Verdict(Cause.HOST_NOT_READY, f"look failed: {errors[0][:60]}")
