"""What is proven resident: by looking, or by one probe a receipt where a probe makes warm.

Probing a model host for a head warms it, so such an item is probed once for each receipt that
says it was warmed. Before a probe is sent, a row that says "not finished" is in the lake: a run
that is killed while it probes leaves the item unproven instead of letting the next run find what
the probe itself put there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from warmup_lib.errors import TargetUnavailable
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, Layer, PlanItem, Proof
from warmup_lib.stage import Progress
from warmup_lib.tables import RESIDENCY
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import EVICTED_KEYS, RedisStore
from warmup_lib.verify.evictions import explained

UNFINISHED = "the probe did not finish: warm the item again"
_LOOK_AT_ONCE = 500

Row = dict[str, Any]
ByPlace = dict[tuple[str, str], Row]
"""The last row by item and target."""


class Residency:
    """The `residency` rows of one plan.

    Args:
        lake: The lake.
        receipts: The last receipt of each item and target.
        context: What the layers need.
        progress: Told how many items of a target are proven.
    """

    def __init__(
        self, lake: Lake, receipts: pa.Table, context: Context, progress: Progress
    ) -> None:
        self._lake = lake
        self._partition = {"plan_id": context.plan_id}
        self._context = context
        self._progress = progress
        self._receipts: ByPlace = {
            (row["item_id"], row["target"]): row for row in receipts.to_pylist()
        }
        manifest = lake.manifest("receipts", self._partition)
        self._evicted: dict[str, Any] = (manifest.meta if manifest else {}).get(EVICTED_KEYS, {})
        earlier = lake.read("residency", self._partition).sort_by("probed_at").to_pylist()
        self._known_rows: ByPlace = {}
        self._keep(earlier)

    async def prove(self, layer: Layer, items: Sequence[PlanItem], target: Target) -> list[Row]:
        """Return one row an item.

        Raises:
            TargetUnavailable: The target does not answer.
        """
        if layer.target_kind == "host" and layer.proof_warms:
            return await self._host(layer, items, target)
        rows: list[Row] = []
        for start in range(0, len(items), _LOOK_AT_ONCE):
            batch = items[start : start + _LOOK_AT_ONCE]
            proofs = await layer.prove(batch, target, self._context)
            rows += [self._row(i, target, p) for i, p in zip(batch, proofs, strict=True)]
            self._progress(f"prove {layer.name} on {target.name}", len(rows), len(items))
        if isinstance(target, RedisStore):
            rows = await explained(rows, self._receipts, target, self._evicted.get(target.name))
        return rows

    def publish(self, rows: Sequence[Row]) -> int:
        """Replace the plan's rows; return how many there are.

        What is known of a target that did not answer now is kept: its probes were sent.
        """
        self._keep(rows)
        table = pa.Table.from_pylist(list(self._known_rows.values()), schema=RESIDENCY.schema)
        return self._lake.replace("residency", self._partition, table).rows

    async def _host(self, layer: Layer, items: Sequence[PlanItem], target: Target) -> list[Row]:
        epoch = await target.epoch()
        rows = {item.item_id: self._known(item, target, epoch) for item in items}
        open_items = [item for item in items if rows[item.item_id] is None]
        step = self._context.config.apply.concurrency
        for start in range(0, len(open_items), step):
            batch = open_items[start : start + step]
            self._note([self._row(i, target, Proof(i.item_id, False, UNFINISHED)) for i in batch])
            proofs = await layer.prove(batch, target, self._context)
            proven = [self._row(i, target, p) for i, p in zip(batch, proofs, strict=True)]
            self._note(proven)
            rows |= {row["item_id"]: row for row in proven}
            done = len(items) - len(open_items) + start + len(batch)
            self._progress(f"prove {layer.name} on {target.name}", done, len(items))
        return [row for row in rows.values() if row is not None]

    def _known(self, item: PlanItem, target: Target, epoch: str) -> Row | None:
        """Return the row of an item that must not be probed; None: it is to be probed."""
        receipt = self._receipts.get((item.item_id, target.name))
        if receipt is None:
            return self._row(item, target, Proof(item.item_id, False, "no receipt: not applied"))
        if receipt["status"] not in ("warmed", "already"):
            reason = receipt["error"] or receipt["status"]
            return self._row(item, target, Proof(item.item_id, False, f"not warmed: {reason}"))
        if receipt["target_epoch"] != epoch:
            reason = "the host was restarted after it was warmed"
            return self._row(item, target, Proof(item.item_id, False, reason))
        earlier = self._known_rows.get((item.item_id, target.name))
        if earlier is not None and earlier["applied_at"] == receipt["at"]:
            return earlier
        return None

    def _row(self, item: PlanItem, target: Target, proof: Proof) -> Row:
        receipt = self._receipts.get((item.item_id, target.name))
        return {
            "item_id": item.item_id,
            "layer": item.layer,
            "tenant": item.tenant,
            "target": target.name,
            "resident": proof.resident,
            "evidence": proof.evidence,
            "applied_at": receipt["at"] if receipt else None,
            "probed_at": datetime.now(UTC),
        }

    def _keep(self, rows: Sequence[Row]) -> None:
        self._known_rows |= {(row["item_id"], row["target"]): row for row in rows}

    def _note(self, rows: Sequence[Row]) -> None:
        self._keep(rows)
        table = pa.Table.from_pylist(list(rows), schema=RESIDENCY.schema)
        self._lake.append("residency", self._partition, table)


async def prove_all(
    residency: Residency,
    items: Sequence[PlanItem],
    layers: Sequence[Layer],
    targets: Sequence[Target],
) -> tuple[list[Row], dict[str, str]]:
    """Prove every item on every target that can hold it.

    Returns:
        One row an item and target that answered, and the reason by target that did not.
    """
    rows: list[Row] = []
    down: dict[str, str] = {}
    for target in targets:
        for layer in layers:
            ours = [item for item in items if item.layer == layer.name]
            if not ours or layer.target_kind != target.kind or target.name in down:
                continue
            try:
                rows += await residency.prove(layer, ours, target)
            except TargetUnavailable as error:
                down[target.name] = error.reason
    return rows, down


def completion(
    rows: Sequence[Row],
    items: Sequence[PlanItem],
    layers: Sequence[Layer],
    targets: Sequence[Target],
) -> dict[str, Any]:
    """Return planned and resident items by layer, target and tenant.

    An item without a row, because its target did not answer, is planned and not resident.
    """
    resident = {(row["item_id"], row["target"]) for row in rows if row["resident"]}
    table: dict[str, Any] = {}
    for layer in layers:
        ours = [item for item in items if item.layer == layer.name]
        homes = [t for t in targets if t.kind == layer.target_kind]
        if not ours or not homes:
            continue
        table[layer.name] = {
            target.name: {
                **_counts(ours, target, resident),
                "tenants": {
                    tenant: _counts([i for i in ours if i.tenant == tenant], target, resident)
                    for tenant in sorted({i.tenant for i in ours})
                },
            }
            for target in homes
        }
    return table


def _counts(
    items: Sequence[PlanItem], target: Target, resident: set[tuple[str, str]]
) -> dict[str, Any]:
    held = sum((item.item_id, target.name) in resident for item in items)
    return {"planned": len(items), "resident": held, "completion": held / len(items)}
