"""What one plan added, kept and dropped against another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.plan.current import plan_meta
from warmup_lib.plan.points import joined, place_of
from warmup_lib.tables import reason_word

_GONE = "no_candidate"
_SHOWN = ("item_id", "tenant", "rank", "expected_micro", "reason")


def diff(lake: Lake, a: str, b: str) -> dict[str, Any]:
    """Return what plan `b` added, kept and dropped against plan `a`.

    Returns:
        `a`, `b`, and `layers`: for each layer the counts `added`, `kept` and `dropped`, and under
        `items` the item id, tenant, rank, expected hits and reason of each; never a text. A kept
        item is shown as plan `b` has it. Where `b` adds to `a`, what only `a` holds stays warm and
        is kept. A dropped item has in `left_out` why `b` left it out, None where it was no
        candidate; `why_dropped` counts the words of that.

    Raises:
        InputDataError: There is no such plan.
    """
    for plan_id in (a, b):
        if lake.manifest("plan", {"plan_id": plan_id}) is None:
            raise InputDataError(f"no such plan: {plan_id}")
    columns = ["layer", "key_digest", *_SHOWN]
    old, new = (lake.read("plan", {"plan_id": plan_id}, columns) for plan_id in (a, b))
    again = new.filter(pc.is_in(new["item_id"], value_set=_ids(old)))
    gone = _without(old, new)
    stays = plan_meta(lake, b).get("base") == a
    sides = {
        "added": _without(new, old),
        "kept": pa.concat_tables([again, gone]) if stays else again,
        "dropped": gone.slice(0, 0) if stays else gone,
    }
    why = _why(lake, b, sides["dropped"])
    layers = sorted({*old["layer"].to_pylist(), *new["layer"].to_pylist()})
    return {"a": a, "b": b, "layers": {layer: _of_layer(sides, layer, why) for layer in layers}}


def _of_layer(sides: dict[str, pa.Table], layer: str, why: Mapping[str, str]) -> dict[str, Any]:
    items = {
        side: rows.filter(pc.equal(rows["layer"], layer)).select(_SHOWN).to_pylist()
        for side, rows in sides.items()
    }
    for rows in items.values():
        for row in rows:
            row["expected_hits"] = row.pop("expected_micro") / 1_000_000
    for row in items["dropped"]:
        row["left_out"] = why.get(row["item_id"])
    words = Counter(reason_word(row["left_out"] or _GONE) for row in items["dropped"])
    counts: dict[str, Any] = {side: len(rows) for side, rows in items.items()}
    return counts | {"why_dropped": dict(sorted(words.items())), "items": items}


def _why(lake: Lake, plan_id: str, items: pa.Table) -> dict[str, str]:
    """Return by item id why a plan left items out; those that were no candidates are absent."""
    columns = ["layer", "tenant", "digest", "reason"]
    left_out = lake.read("left_out", {"plan_id": plan_id}, columns)
    places = place_of(
        joined(items["layer"], items["tenant"], items["key_digest"]),
        joined(left_out["layer"], left_out["tenant"], left_out["digest"]),
    )
    found = zip(items["item_id"].to_pylist(), places.tolist(), strict=True)
    return {item: left_out["reason"][place].as_py() for item, place in found if place >= 0}


def _ids(table: pa.Table) -> pa.Array:
    return table["item_id"].combine_chunks()


def _without(table: pa.Table, other: pa.Table) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table["item_id"], value_set=_ids(other))))
