"""What warming took: an apply leaves it beside its receipts, a later plan reckons with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warmup_lib.lake import Lake

_COSTS = "costs"


def record(lake: Lake, plan_id: str, costs: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Keep what warming took, beside a plan's receipts; layers that took nothing keep their old.

    Args:
        lake: The lake.
        plan_id: The plan.
        costs: By layer and target: `items`, `seconds`, `bytes` and `tokens`.
    """
    took = {
        layer: {target: dict(cost) for target, cost in of.items() if cost["items"]}
        for layer, of in costs.items()
    }
    kept = recorded(lake, plan_id) | {layer: of for layer, of in took.items() if of}
    lake.annotate("receipts", {"plan_id": plan_id}, {_COSTS: kept})


def recorded(lake: Lake, plan_id: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what warming a plan took, by layer and target; empty where it was not warmed."""
    manifest = lake.manifest("receipts", {"plan_id": plan_id})
    return dict(manifest.meta.get(_COSTS, {})) if manifest is not None else {}
