"""What a resumed apply need not do again: receipts name the candidates, looking confirms them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from warmup_lib.layers.base import Context, Layer, PlanItem
from warmup_lib.targets.base import Target

if TYPE_CHECKING:
    import pyarrow as pa

_LOOK_AT_ONCE = 500


def vouched(
    items: Sequence[PlanItem], receipts: pa.Table, target: str, epoch: str, as_of: datetime
) -> list[PlanItem]:
    """Return the items that a receipt says are warm on this very process of the target.

    Args:
        items: Items of one layer.
        receipts: The last receipt of each item and target.
        target: The target's name.
        epoch: The target's present epoch; a receipt of another one counts for nothing.
        as_of: Now; a receipt older than the item's lifetime counts for nothing.
    """
    good = {
        row["item_id"]: row["at"]
        for row in receipts.select(
            ["item_id", "target", "target_epoch", "status", "at"]
        ).to_pylist()
        if row["target"] == target
        and row["target_epoch"] == epoch
        and row["status"] in ("warmed", "already")
    }
    return [
        item
        for item in items
        if item.item_id in good and as_of - good[item.item_id] < timedelta(seconds=item.ttl_s)
    ]


async def remaining(
    layer: Layer, items: Sequence[PlanItem], done: Sequence[PlanItem], target: Target, ctx: Context
) -> list[PlanItem]:
    """Return what is left to warm when `done` is vouched for by receipts.

    Each vouched item is looked at too, for it may have been evicted. Where looking would warm it
    and take the chance of a true proof away, its receipt is believed.

    Raises:
        TargetUnavailable: The target does not answer.
    """
    resident = {item.item_id for item in done}
    if layer.target_kind == "redis" or not layer.proof_warms:
        resident = set()
        for start in range(0, len(done), _LOOK_AT_ONCE):
            proofs = await layer.prove(done[start : start + _LOOK_AT_ONCE], target, ctx)
            resident |= {proof.item_id for proof in proofs if proof.resident}
    return [item for item in items if item.item_id not in resident]
