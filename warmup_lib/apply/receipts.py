"""The journal of one apply: receipts reach the lake as each batch ends, and are merged at the end.

Batches that end while one append is under way share the next one, so that a slow lake costs
fewer and larger parts, not a longer queue. A killed apply loses the receipts of what was in
flight and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.apply.lock import LakeLock
from warmup_lib.lake import Lake, Manifest
from warmup_lib.layers.base import Outcome, PlanItem, Status
from warmup_lib.tables import RECEIPTS

_LOCK_WAIT_S = 120.0
_MOST_PARTS = 64
"""From here parts are merged: each append rewrites the list of parts, so its cost grows with it."""


@dataclass(frozen=True)
class Receipt:
    """One row of the `receipts` table."""

    item_id: str
    layer: str
    tenant: str
    target: str
    target_epoch: str
    status: Status
    attempts: int
    bytes: int
    tokens: int
    ms: float
    ttl_s: int | None
    error: str | None
    issued: int
    effective: Sequence[int] | None
    key_hash: str | None
    at: datetime


def receipt(
    item: PlanItem, outcome: Outcome, target: str, epoch: str, tries: int, at: datetime
) -> Receipt:
    """Return the receipt of one item on one target.

    Args:
        item: The item.
        outcome: What became of it.
        target: The target's name.
        epoch: The target's epoch while it was warmed.
        tries: How often the item's batch was tried.
        at: When it was done.
    """
    return Receipt(
        item_id=item.item_id,
        layer=item.layer,
        tenant=item.tenant,
        target=target,
        target_epoch=epoch,
        status=outcome.status,
        attempts=outcome.attempts + tries - 1,
        bytes=outcome.bytes,
        tokens=outcome.tokens,
        ms=outcome.ms,
        ttl_s=outcome.ttl_s,
        error=outcome.error,
        issued=outcome.issued,
        effective=outcome.effective,
        key_hash=outcome.key_hash,
        at=at,
    )


def latest(receipts: pa.Table) -> pa.Table:
    """Return the last receipt of each item and target."""
    ordered = receipts.sort_by("at")
    pairs = zip(ordered["item_id"].to_pylist(), ordered["target"].to_pylist(), strict=True)
    last = {pair: index for index, pair in enumerate(pairs)}
    return ordered.take(pa.array(last.values(), pa.int64()))


class Journal:
    """The receipts of one plan in the lake; several processes may write to one plan.

    Args:
        lake: The lake.
        plan_id: The plan.
    """

    def __init__(self, lake: Lake, plan_id: str) -> None:
        self._lake = lake
        self._plan_id = plan_id
        self._partition = {"plan_id": plan_id}
        self._pending: list[Receipt] = []
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    @property
    def path(self) -> str:
        """The folder of the receipts."""
        return self._lake.path("receipts", self._partition)

    def read(self) -> pa.Table:
        """Return the last receipt of each item and target."""
        return latest(self._lake.read("receipts", self._partition))

    def inherited(self) -> pa.Table:
        """Return the last receipts of the plans that this plan builds on."""
        found = [RECEIPTS.empty()]
        seen = {self._plan_id}
        step = self._base_of(self._plan_id)
        while step is not None and step not in seen:
            found.append(self._lake.read("receipts", {"plan_id": step}))
            seen.add(step)
            step = self._base_of(step)
        return latest(pa.concat_tables(found))

    def _base_of(self, plan_id: str) -> str | None:
        manifest = self._lake.manifest("plan", {"plan_id": plan_id})
        return manifest.meta.get("base") if manifest is not None else None

    async def forget(self, target: str, layers: Collection[str]) -> None:
        """Drop what is known of these layers on one target: it will all be done again."""

        def drop() -> None:
            old = self._lake.read("receipts", self._partition)
            ours = pc.and_(
                pc.equal(old["target"], target),
                pc.is_in(old["layer"], pa.array(list(layers), pa.string())),
            )
            self._lake.replace("receipts", self._partition, old.filter(pc.invert(ours)))

        async with self._turn, self._lock():
            await asyncio.to_thread(drop)

    async def record(self, receipts: Iterable[Receipt]) -> None:
        """Return once these receipts are in the lake."""
        self._pending += receipts
        if self._next is None:
            self._next = asyncio.create_task(self._write())
        await asyncio.shield(self._next)

    async def _write(self) -> None:
        async with self._turn:
            batch, self._pending, self._next = self._pending, [], None
            async with self._lock():
                await asyncio.to_thread(self._append, batch)

    def _append(self, batch: Sequence[Receipt]) -> None:
        rows = pa.Table.from_pylist([vars(r) for r in batch], schema=RECEIPTS.schema)
        manifest = self._lake.append("receipts", self._partition, rows)
        if len(manifest.parts) >= _MOST_PARTS:
            self._merge()

    async def compact(self) -> Manifest:
        """Merge the parts into one that holds the last receipt of each item and target."""
        async with self._turn, self._lock():
            return await asyncio.to_thread(self._merge)

    def _merge(self) -> Manifest:
        known = self._lake.manifest("receipts", self._partition)
        facts = known.meta if known is not None else {}
        return self._lake.replace("receipts", self._partition, self.read(), facts)

    def _lock(self) -> LakeLock:
        return LakeLock(self._lake, f"receipts-{self._plan_id}", wait_s=_LOCK_WAIT_S)
