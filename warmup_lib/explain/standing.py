"""What is known of a plan's items: planned where, what applying did, what looking showed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from warmup_lib.apply.receipts import Journal
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import EVICTED_KEYS, RedisStore

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
Place = tuple[str, str]
"""Item id and target."""


@dataclass(frozen=True)
class Live:
    """What a target said when it was explained.

    Attributes:
        epoch: Its process.
        kind: `redis` or `host`.
        emptied: A Redis that has lost the mark of the plan that owns it, which outlives all
            entries: somebody flushed it.
        evicted: Keys that a Redis dropped since the apply; None: not known.
    """

    epoch: str
    kind: str
    emptied: bool = False
    evicted: int | None = None


@dataclass
class Standing:
    """A plan's items and what became of them.

    Attributes:
        items: By layer, tier, tenant and digest in the key; a retrieval chunk may be there twice.
        by_text: Items of answers by the digest of their text.
        receipts: The last receipt of each item and target, of the plan or of one it builds on.
        residency: What looking showed, by item and target.
        targets: What the targets said now; one that did not answer is absent.
        kinds: Whether a target is a `redis` or a `host`.
        as_of: When it was explained.
        survived: Until when requests found what the plan wrote to a target; see `survivors`.
    """

    items: dict[tuple[str, str | None, str, str], list[PlanItem]]
    by_text: dict[str, list[PlanItem]]
    receipts: Mapping[Place, Row]
    residency: Mapping[Place, Row]
    targets: Mapping[str, Live]
    kinds: Mapping[str, str]
    as_of: datetime
    survived: Mapping[str, datetime] = field(default_factory=dict)
    _bare: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._bare = frozenset(self._all_gone())

    def planned(self, layer: str, tier: str | None, tenant: str, digest: str) -> list[PlanItem]:
        """Return the items of one place."""
        return self.items.get((layer, tier, tenant, digest), [])

    def of_tier(self, layer: str, tier: str | None, tenant: str) -> list[PlanItem]:
        """Return a tenant's items of one tier."""
        return [
            item
            for (la, ti, te, _), held in self.items.items()
            if (la, ti, te) == (layer, tier, tenant)
            for item in held
        ]

    def resident(self, item: PlanItem, target: str | None) -> bool:
        """Return whether looking found an item on a target; None: on any."""
        names = self.kinds if target is None else (target,)
        return any(self.residency.get((item.item_id, n), {}).get("resident") for n in names)

    def elsewhere(self, item: PlanItem, target: str) -> str | None:
        """Return another target of the same kind that holds an item; None: there is none."""
        kind = self.kinds.get(target)
        others = [name for name, held in self.kinds.items() if held == kind and name != target]
        return next((name for name in others if self._holds(item, name)), None)

    def flushed(self, target: str, at: datetime) -> bool:
        """Return whether a target had lost everything at once by then, in one process."""
        live = self.targets.get(target)
        if at <= self.survived.get(target, _LONG_AGO):
            return False
        return (live is not None and live.emptied) or target in self._bare

    def holding(self, epoch: str | None, kind: str) -> str | None:
        """Return the target whose process this is; without an epoch the only one of its kind."""
        names = [name for name, held in self.kinds.items() if held == kind]
        if len(names) == 1:
            return names[0]
        seen = {name for (_, name), row in self.receipts.items() if row["target_epoch"] == epoch}
        seen |= {name for name, live in self.targets.items() if live.epoch == epoch}
        return min(seen & set(names), default=None)

    def whole(self, tenant: str, head: str, target: str | None) -> int:
        """Return the tokens of a planned head that a host was seen to keep; 1: not known."""
        for item in self.planned("prefixes", None, tenant, head) if target else ():
            row = self.residency.get((item.item_id, target or ""))
            found = _CACHED.fullmatch(row["evidence"]) if row is not None else None
            if found is not None:
                return max(1, int(found[1]))
        return 1

    def _holds(self, item: PlanItem, target: str) -> bool:
        row = self.residency.get((item.item_id, target))
        if row is not None:
            return bool(row["resident"])
        receipt = self.receipts.get((item.item_id, target))
        return receipt is not None and receipt["status"] in WARM

    def _all_gone(self) -> Iterable[str]:
        """Yield the Redis targets on which nothing is found of what should still be there."""
        live: dict[str, list[bool]] = defaultdict(list)
        for place, row in self.residency.items():
            receipt = self.receipts.get(place)
            if self.kinds.get(place[1]) != "redis" or receipt is None:
                continue
            if receipt["status"] in WARM and ends(receipt) > row["probed_at"]:
                live[place[1]].append(row["resident"])
        for name, found in live.items():
            if len(found) > 1 and not any(found):
                yield name


_CACHED = re.compile(r"cached=\d+/(\d+)")
WARM = ("warmed", "already")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)


def ends(receipt: Row) -> datetime:
    """Return when what a receipt wrote ends; a host names no end."""
    if receipt["ttl_s"] is None:
        return _NEVER
    end: datetime = receipt["at"] + timedelta(seconds=receipt["ttl_s"])
    return end


async def ask(targets: Sequence[Target], lake: Lake, plan_id: str) -> dict[str, Live]:
    """Return what each target says now.

    Raises:
        TargetUnavailable: One does not answer.
    """
    manifest = lake.manifest("receipts", {"plan_id": plan_id})
    before = (manifest.meta if manifest else {}).get(EVICTED_KEYS, {})
    found = {}
    for target in targets:
        epoch = await target.epoch()
        if not isinstance(target, RedisStore):
            found[target.name] = Live(epoch, target.kind)
            continue
        evicted = (await target.facts()).evicted
        known = before.get(target.name)
        if known is not None and known["epoch"] == epoch:
            evicted -= known[EVICTED_KEYS]
        emptied = await target.generation() is None
        found[target.name] = Live(epoch, target.kind, emptied, evicted)
    return found


def stand(
    lake: Lake,
    plan_id: str,
    items: Sequence[PlanItem],
    live: Mapping[str, Live],
    kinds: Mapping[str, str],
    as_of: datetime,
) -> Standing:
    """Return what the lake knows of a plan's items.

    Args:
        lake: The lake.
        plan_id: The plan.
        items: Its items, and those of the plans it builds on.
        live: What the targets said.
        kinds: Whether a target is a `redis` or a `host`.
        as_of: Now.
    """
    by_place: dict[tuple[str, str | None, str, str], list[PlanItem]] = defaultdict(list)
    by_text: dict[str, list[PlanItem]] = defaultdict(list)
    for item in items:
        by_place[item.layer, item.tier, item.tenant, item.key_digest].append(item)
        if item.layer == "responses" and item.text_digest:
            by_text[item.text_digest].append(item)
    journal = Journal(lake, plan_id)
    receipts = _by_place(journal.inherited()) | _by_place(journal.read())
    residency = _by_place(lake.read("residency", {"plan_id": plan_id}))
    return Standing(dict(by_place), dict(by_text), receipts, residency, live, kinds, as_of)


def _by_place(rows: pa.Table) -> dict[Place, Row]:
    return {(row["item_id"], row["target"]): row for row in rows.to_pylist()}
