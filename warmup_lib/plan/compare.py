"""What two applied plans took and gained, side by side: the table of the strategies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.layers.registry import LAYERS
from warmup_lib.layers.spent import recorded

_LOADED_BY_ITSELF = "weights"
"""A host loads them when it starts: their bytes are none that warming adds."""
_P95 = 95


def compare(lake: Lake, a: str, b: str) -> dict[str, Any]:
    """Return what warming two plans took and what first tokens gained by it.

    Returns:
        `plans`: for each its `plan_id`, `strategy`, `items`, `seconds` of its last apply (None: it
        was not applied), `redis_bytes` and `host_bytes` that warming added, `host_tokens` that it
        computed, and on the latest day for which both were verified (`window`) `requests` that
        were sent both cold and warm, the `cold_ms` and `warm_ms` of their first tokens (P95) and
        the `gain` by which it fell. `ratio`: of the second plan to the first, `seconds`, `bytes`
        and `gain`; None where one of the two is not known or is 0.

    Raises:
        InputDataError: There is no such plan.
    """
    for plan_id in (a, b):
        if lake.manifest("plan", {"plan_id": plan_id}) is None:
            raise InputDataError(f"no such plan: {plan_id}")
    window = _window(lake, a, b)
    plans = [_took(lake, plan_id) | _gained(lake, plan_id, window) for plan_id in (a, b)]
    both = [
        {
            "seconds": plan["seconds"],
            "bytes": plan["redis_bytes"] + plan["host_bytes"] if plan["seconds"] else None,
            "gain": plan["gain"],
        }
        for plan in plans
    ]
    ratio = {name: _ratio(both[1][name], both[0][name]) for name in both[0]}
    return {"window": window, "plans": plans, "ratio": ratio}


def _took(lake: Lake, plan_id: str) -> dict[str, Any]:
    manifest, receipts = (
        lake.manifest(table, {"plan_id": plan_id}) for table in ("plan", "receipts")
    )
    costs = recorded(lake, plan_id)
    return {
        "plan_id": plan_id,
        "strategy": manifest.meta["strategy"] if manifest is not None else None,
        "items": manifest.rows if manifest is not None else 0,
        "seconds": receipts.meta.get("seconds") if receipts is not None else None,
        "redis_bytes": _sum(costs, "redis", "bytes"),
        "host_bytes": _sum(costs, "host", "bytes"),
        "host_tokens": _sum(costs, "host", "tokens"),
    }


def _sum(costs: Mapping[str, Mapping[str, Mapping[str, Any]]], kind: str, figure: str) -> int:
    return sum(
        int(of_target[figure])
        for layer, of_layer in costs.items()
        if LAYERS[layer].target_kind == kind and layer != _LOADED_BY_ITSELF
        for of_target in of_layer.values()
    )


def _window(lake: Lake, a: str, b: str) -> str | None:
    """Return the latest window for which both plans were verified."""
    found: dict[str, set[str]] = {a: set(), b: set()}
    for partition in lake.partitions("hits"):
        if partition["plan_id"] in found:
            found[partition["plan_id"]].add(partition["window"])
    # Of one date the whole day goes before log files, whose names are longer.
    return max(found[a] & found[b], key=lambda w: (w[:10], -len(w)), default=None)


def _gained(lake: Lake, plan_id: str, window: str | None) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    if window is not None:
        columns = ["cold_ttft_ms", "warm_ttft_ms"]
        rows = lake.read("hits", {"plan_id": plan_id, "window": window}, columns).to_pylist()
    pairs = [row for row in rows if all(ms is not None for ms in row.values())]
    if not pairs:
        return {"requests": 0, "cold_ms": None, "warm_ms": None, "gain": None}
    cold, warm = (
        float(np.percentile([row[name] for row in pairs], _P95))
        for name in ("cold_ttft_ms", "warm_ttft_ms")
    )
    return {
        "requests": len(pairs),
        "cold_ms": round(cold, 1),
        "warm_ms": round(warm, 1),
        "gain": round(1 - warm / cold, 4),
    }


def _ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 4) if one is not None and other else None
