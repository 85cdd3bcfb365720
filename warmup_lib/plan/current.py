"""Which plan is the current one, and which of its items still stand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.lake import Lake
from warmup_lib.tables import PLAN

_DAY_S = 86_400


def current_plan(
    lake: Lake,
    before_day: str | None = None,
    *,
    layers: Sequence[str] = (),
    scope: dict[str, Any] | None = None,
) -> str | None:
    """Return the newest plan, by day and then by the order in which a day's plans were made.

    Args:
        lake: The lake.
        before_day: Only plans of an earlier day count, so that a plan made again finds what it
            found the first time.
        layers: Only plans that were made for all of these count: a pre-peak plan of one layer
            does not replace the nightly one.
        scope: Only plans made for the same tenants and models count; None: any.
    """
    found = []
    for partition in lake.partitions("plan"):
        meta = plan_meta(lake, partition["plan_id"])
        if before_day is not None and meta["day"] >= before_day:
            continue
        if not set(layers) <= set(meta["layers"]):
            continue
        if scope is not None and meta["scope"] != scope:
            continue
        found.append((meta["day"], meta["sequence"], partition["plan_id"]))
    return max(found)[2] if found else None


def plan_meta(lake: Lake, plan_id: str) -> dict[str, Any]:
    """Return the facts in a plan's manifest; empty where there is no such plan."""
    manifest = lake.manifest("plan", {"plan_id": plan_id})
    return manifest.meta if manifest is not None else {}


def next_sequence(lake: Lake, plan_id: str, day: str) -> int:
    """Return a plan's place among those of its day: the one it has, else the next."""
    if known := plan_meta(lake, plan_id):
        return int(known["sequence"])
    metas = [plan_meta(lake, p["plan_id"]) for p in lake.partitions("plan")]
    return max((int(m["sequence"]) for m in metas if m["day"] == day), default=0) + 1


def standing(lake: Lake, plan_id: str | None, day: str, *, renewed: bool) -> pa.Table:
    """Return the items of a plan and of the plans it builds on that are still warm after `day`.

    An item stands while its lifetime reaches to the end of the day that the plan of `day` serves;
    where two plans hold it, the newer one counts.

    Args:
        lake: The lake.
        plan_id: The newest plan; None: there is none, and nothing is warm.
        day: Last log day, ISO date.
        renewed: Count all items of `plan_id` itself: if it goes on to serve, it is applied again.
    """
    parts: list[pa.Table] = []
    step = plan_id
    seen: set[str] = set()
    while step is not None and step not in seen and (meta := plan_meta(lake, step)):
        items = lake.read("plan", {"plan_id": step})
        if step != plan_id or not renewed:
            age = (date.fromisoformat(day) - date.fromisoformat(meta["day"])).days + 1
            items = items.filter(pc.greater_equal(items["ttl_s"], age * _DAY_S))
        if seen:
            known = pa.concat_tables(parts)["item_id"].combine_chunks()
            items = items.filter(pc.invert(pc.is_in(items["item_id"], value_set=known)))
        parts.append(items)
        seen.add(step)
        step = meta["base"]
    return pa.concat_tables(parts) if parts else PLAN.empty()
