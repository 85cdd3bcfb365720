"""What one plan added, kept and dropped against another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.plan.current import plan_meta

_SHOWN = ("item_id", "tenant", "rank", "expected_micro", "reason")


def diff(lake: Lake, a: str, b: str) -> dict[str, Any]:
    """Return what plan `b` added, kept and dropped against plan `a`.

    Returns:
        `a`, `b`, and `layers`: for each layer the counts `added`, `kept` and `dropped`, and under
        `items` the item id, tenant, rank, expected hits and reason of each; never a text. A kept
        item is shown as plan `b` has it. Where `b` adds to `a`, what only `a` holds stays warm and
        is kept.

    Raises:
        InputDataError: There is no such plan.
    """
    for plan_id in (a, b):
        if lake.manifest("plan", {"plan_id": plan_id}) is None:
            raise InputDataError(f"no such plan: {plan_id}")
    columns = ["layer", *_SHOWN]
    old, new = (lake.read("plan", {"plan_id": plan_id}, columns) for plan_id in (a, b))
    again = new.filter(pc.is_in(new["item_id"], value_set=_ids(old)))
    gone = _without(old, new)
    stays = plan_meta(lake, b).get("base") == a
    sides = {
        "added": _without(new, old),
        "kept": pa.concat_tables([again, gone]) if stays else again,
        "dropped": gone.slice(0, 0) if stays else gone,
    }
    layers = sorted({*old["layer"].to_pylist(), *new["layer"].to_pylist()})
    return {"a": a, "b": b, "layers": {layer: _of_layer(sides, layer) for layer in layers}}


def _of_layer(sides: dict[str, pa.Table], layer: str) -> dict[str, Any]:
    items = {
        side: rows.filter(pc.equal(rows["layer"], layer)).select(_SHOWN).to_pylist()
        for side, rows in sides.items()
    }
    for rows in items.values():
        for row in rows:
            row["expected_hits"] = row.pop("expected_micro") / 1_000_000
    return {side: len(rows) for side, rows in items.items()} | {"items": items}


def _ids(table: pa.Table) -> pa.Array:
    return table["item_id"].combine_chunks()


def _without(table: pa.Table, other: pa.Table) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table["item_id"], value_set=_ids(other))))
