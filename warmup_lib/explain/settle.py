"""Which cause goes first: from what went round the caches to what nobody planned.

The order is that of docs/causes.md: whoever did not look, or looked in a wrong place, would have
missed whatever was warm; only then it matters what became of the item; only then why there was
none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from warmup_lib.causes import LOOKED_NOWHERE, Cause
from warmup_lib.explain.fate import fate
from warmup_lib.explain.hosts import Hosts
from warmup_lib.explain.mismatch import Mismatch
from warmup_lib.explain.miss import L3, PREFIXES, Miss, Verdict
from warmup_lib.explain.misses import Passed, Unread
from warmup_lib.explain.places import digests
from warmup_lib.explain.standing import Standing
from warmup_lib.explain.unplanned import Unplanned
from warmup_lib.keys import Keys
from warmup_lib.layers.base import PlanItem

Judge = Callable[[Sequence[Miss]], Sequence[Verdict | None]]


class Settler:
    """Gives misses their causes.

    Args:
        standing: What is known of the plan's items.
        keys: The key builder.
        hosts: Judges how hosts were asked.
        mismatch: Compares asked keys with those of the contract.
        unplanned: Explains what was not planned.
    """

    def __init__(
        self,
        standing: Standing,
        keys: Keys,
        hosts: Hosts,
        mismatch: Mismatch,
        unplanned: Unplanned,
    ) -> None:
        self._standing = standing
        self._keys = keys
        self._hosts = hosts
        self._mismatch = mismatch
        self._unplanned = unplanned

    def settle(self, misses: Sequence[Miss]) -> list[Verdict]:
        """Return one verdict a miss, in order."""
        found: list[Verdict | None] = [_not_ready(miss) for miss in misses]
        self._fill(found, misses, self._mis_asked)
        self._fill(found, misses, self._mismatched)
        self._fill(found, misses, lambda rest: [self._planned(miss) for miss in rest])
        self._fill(found, misses, self._unplanned.settle)
        return [v or Verdict(Cause.UNKNOWN, "nothing fits") for v in found]

    @staticmethod
    def _fill(found: list[Verdict | None], misses: Sequence[Miss], judge: Judge) -> None:
        """Ask a judge about the misses that have no verdict yet."""
        rest = [n for n, verdict in enumerate(found) if verdict is None]
        verdicts = judge([misses[n] for n in rest]) if rest else []
        for n, verdict in zip(rest, verdicts, strict=True):
            found[n] = verdict

    def _mis_asked(self, misses: Sequence[Miss]) -> list[Verdict | None]:
        return self._in_vain(misses, self._hosts.settle(misses))

    def _mismatched(self, misses: Sequence[Miss]) -> list[Verdict | None]:
        verdicts = self._mismatch.settle(misses)
        return self._in_vain(misses, [verdicts.get(n) for n in range(len(misses))])

    def _in_vain(
        self, misses: Sequence[Miss], verdicts: Sequence[Verdict | None]
    ) -> list[Verdict | None]:
        """Return verdicts with the item that a wrong key did not find, where one is planned."""
        return [
            replace(verdict, item_id=self._own_item(miss))
            if verdict is not None and verdict.cause.mismatch
            else verdict
            for miss, verdict in zip(misses, verdicts, strict=True)
        ]

    def _own_item(self, miss: Miss) -> str | None:
        for digest in digests(miss, self._keys):
            for item in self._standing.planned(miss.layer, miss.tier, miss.asked.tenant, digest):
                return item.item_id
        return None

    def _planned(self, miss: Miss) -> Verdict | None:
        """Return what became of what was planned for a request; None: something was not."""
        asked = miss.asked
        if miss.tier == L3:
            items = self._standing.of_tier(miss.layer, miss.tier, asked.tenant)
            return self._fate_of(items, miss)
        wanted = [
            self._standing.planned(miss.layer, miss.tier, asked.tenant, digest)
            for digest in digests(miss, self._keys)
        ]
        if verdict := self._fate_of([item for items in wanted for item in items], miss):
            return verdict
        if wanted and all(wanted):
            return Verdict(Cause.UNKNOWN, "planned, and there as far as is known")
        return None

    def _fate_of(self, items: Sequence[PlanItem], miss: Miss) -> Verdict | None:
        verdicts = (fate(item, miss, self._standing) for item in items)
        return next((verdict for verdict in verdicts if verdict is not None), None)


def passed(one: Passed) -> Verdict:
    """Return why no look was made for a request that asked for none to be left out."""
    told = LOOKED_NOWHERE if one.evidence is not None else "evidence=none of its log has it"
    return Verdict(Cause.BYPASS_MIDDLEWARE, told)


def unread(one: Unread) -> Verdict:
    """Return that nobody knows why a request missed, for its gateway's word can't be read."""
    return Verdict(Cause.UNKNOWN, one.why)


def _not_ready(miss: Miss) -> Verdict | None:
    if miss.layer == PREFIXES and miss.evidence is not None and miss.evidence.host_ready is False:
        return Verdict(Cause.HOST_NOT_READY, "the host had not said that it is ready")
    errors = [look.error or "error" for look in miss.looks if look.found == "error"]
    if not errors:
        return None
    return Verdict(Cause.HOST_NOT_READY, f"look failed: {errors[0][:60]}")
