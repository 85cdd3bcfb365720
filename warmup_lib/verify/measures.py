"""Figures drawn from measured rows: hit ratios, first-token percentiles, gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warmup_lib.config import GatesConfig

Row = Mapping[str, Any]
GATED_LAYER = "responses"
"""The layer that the gate `cache_hit_ratio` is about: there a hit saves the whole request."""


def main_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows about the main items of layers: tiers are counted apart."""
    return [row for row in rows if row["tier"] is None]


def tiers(rows: Sequence[Row]) -> dict[str, Any]:
    """Return by tier its layer, and hits / requests of those that ask for such an entry.

    Where requests say what they retrieved, `share` is the mean part of it that was found.
    """
    found: dict[str, Any] = {}
    for tier in sorted({row["tier"] for row in rows} - {None}):
        ours = [row for row in rows if row["tier"] == tier]
        shares = [row["share"] for row in ours if row["share"] is not None]
        found[tier] = {
            "layer": ours[0]["layer"],
            "requests": len(ours),
            "hits": sum(row["hit"] for row in ours),
            "hit_ratio": _ratio(ours),
            "share": sum(shares) / len(shares) if shares else None,
            "tenants": {
                tenant: _ratio([row for row in ours if row["tenant"] == tenant])
                for tenant in sorted({row["tenant"] for row in ours})
            },
        }
    return found


def hit_ratios(rows: Sequence[Row]) -> dict[str, Any]:
    """Return hits / requests by layer, over all its targets and for each tenant."""
    return {
        layer: {
            "overall": _ratio(of_layer),
            "requests": len(of_layer),
            "hits": sum(row["hit"] for row in of_layer),
            "tenants": {
                tenant: _ratio([row for row in of_layer if row["tenant"] == tenant])
                for tenant in sorted({row["tenant"] for row in of_layer})
            },
        }
        for layer, of_layer in _by_layer(rows).items()
    }


def by_match(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Return by layer how many requests were served by which kind of match, and missed."""
    return {
        layer: dict(sorted(Counter(row["match"] or "miss" for row in of_layer).items()))
        for layer, of_layer in _by_layer(rows).items()
    }


def first_token(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return first-token times of the requests that were sent both cold and warm; None: none.

    `on_hits` are those pairs whose warm request found its head warm.
    """
    pairs = [r for r in rows if r["cold_ttft_ms"] is not None and r["warm_ttft_ms"] is not None]
    if not pairs:
        return None
    hits = [row for row in pairs if row["hit"]]
    return _pairs(pairs) | {"on_hits": _pairs(hits) if hits else None}


def gates(
    completion: Mapping[str, Mapping[str, Any]],
    ratios: Mapping[str, Any],
    control_hits: int | None,
    limits: GatesConfig,
) -> dict[str, dict[str, Any]]:
    """Return each gate that was measured: its value, its threshold and whether it holds.

    Args:
        completion: Counts by layer and target; the worst one decides.
        ratios: What `hit_ratios` returns; empty without later traffic.
        control_hits: Hits where nothing was warmed, which must be 0; None: not measured.
        limits: The thresholds.
    """
    found: dict[str, dict[str, Any]] = {}
    shares = [part["completion"] for targets in completion.values() for part in targets.values()]
    if shares:
        found["warmup_completion"] = _at_least(min(shares), limits.warmup_completion)
    if GATED_LAYER in ratios:
        value = ratios[GATED_LAYER]["overall"]
        found["cache_hit_ratio"] = _at_least(value, limits.cache_hit_ratio)
    if control_hits is not None:
        found["control_hits"] = {
            "value": control_hits,
            "threshold": 0,
            "passed": control_hits == 0,
        }
    return found


def incomplete(
    completion: Mapping[str, Mapping[str, Any]],
    proven: Sequence[Row],
    gates: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    """Say where the gate `warmup_completion` failed worst, and why; nothing where it holds.

    Args:
        completion: Counts by layer and target.
        proven: Rows of `residency`.
        gates: What `gates` returns.
    """
    gate = gates.get("warmup_completion")
    if gate is None or gate["passed"]:
        return []
    places = [
        (part["completion"], layer, target, part)
        for layer, targets in completion.items()
        for target, part in targets.items()
    ]
    _, layer, target, part = min(places, key=lambda place: place[:3])
    why = Counter(
        row["evidence"]
        for row in proven
        if (row["layer"], row["target"]) == (layer, target) and not row["resident"]
    ).most_common(1)
    reason = why[0][0] if why else "it did not answer"
    return [
        f"gate warmup_completion failed on layer {layer} of target '{target}': "
        f"{part['resident']:,} of {part['planned']:,} items are resident; of most others: {reason}"
    ]


def _at_least(value: float, threshold: float) -> dict[str, Any]:
    return {"value": value, "threshold": threshold, "passed": value >= threshold}


def _by_layer(rows: Sequence[Row]) -> dict[str, list[Row]]:
    layers: dict[str, list[Row]] = {}
    for row in rows:
        layers.setdefault(row["layer"], []).append(row)
    return layers


def _ratio(rows: Sequence[Row]) -> float:
    return sum(bool(row["hit"]) for row in rows) / len(rows)


def _pairs(pairs: Sequence[Row]) -> dict[str, Any]:
    cold = np.array([row["cold_ttft_ms"] for row in pairs])
    warm = np.array([row["warm_ttft_ms"] for row in pairs])
    return {
        "cold": _percentiles(cold),
        "warm": _percentiles(warm),
        "speed_up": float(np.median(cold / warm)),
    }


def _percentiles(values: Any) -> dict[str, Any]:
    p50, p99 = np.percentile(values, [50, 99])
    return {"p50": float(p50), "p99": float(p99), "n": len(values)}
