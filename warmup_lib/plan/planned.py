"""What a plan's items are going to take and to save, by layer, from what was measured before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.layers.base import Layer
from warmup_lib.plan.assembly import head_stems
from warmup_lib.plan.points import ints
from warmup_lib.plan.value import Value
from warmup_lib.tables import MICRO


def planned(items: pa.Table, layers: Sequence[Layer], value: Value) -> dict[str, dict[str, Any]]:
    """Return for each layer what warming its items takes on one target, and what they save.

    Args:
        items: Rows of the `plan` table.
        layers: The plan's layers.
        value: What items save and take.

    Returns:
        By layer `seconds` and `bytes`, of heads also `tokens`, `saved_s` (seconds of waiting a
        day), and `from`: `applies`, where earlier ones were measured, or `default`.
    """
    return {
        layer.name: _of_layer(layer, items.filter(pc.equal(items["layer"], layer.name)), value)
        for layer in layers
    }


def _of_layer(layer: Layer, items: pa.Table, value: Value) -> dict[str, Any]:
    tiers = items["tier"].unique().to_pylist()
    saved = 0
    for tier in tiers:
        mask = pc.is_null(items["tier"]) if tier is None else pc.equal(items["tier"], tier)
        part = items.filter(mask)
        ends = _ends(layer, part)
        saved += int(value.saved(part, ints(part["expected_micro"]), ends).sum())
    told: dict[str, Any] = {}
    spent = value.spent(layer.name)
    if layer.name == "prefixes":
        tokens = int(head_stems(items).tokens.sum())
        told = {"tokens": tokens, "seconds": tokens * spent.token_s}
        size = tokens * spent.token_bytes
    else:
        told = {"seconds": float(value.seconds(items, np.zeros(items.num_rows, np.int64)).sum())}
        size = (
            float(pc.sum(items["bytes"], min_count=0).as_py()) or items.num_rows * spent.item_bytes
        )
    return {
        **told,
        "seconds": round(told["seconds"], 3),
        "bytes": round(size),
        "saved_s": round(saved / MICRO, 3),
        "from": "applies" if layer.name in value.measured.spent else "default",
    }


def _ends(layer: Layer, items: pa.Table) -> Any:
    if layer.name == "prefixes":
        return head_stems(items).ends[: items.num_rows]
    return np.zeros(items.num_rows, np.int64)
