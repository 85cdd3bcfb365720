"""Forecasts held against what came true: did the intervals hold their share, are the means right?

Only whole days of a lake are scored, for a plan expects hits a day, and only layers whose every
request is looked up. An item's hits are the requests that its entry served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from warmup_lib.forecast.spread import HOT, pit
from warmup_lib.tables import MICRO

if TYPE_CHECKING:
    from warmup_lib.layers.base import PlanItem

Row = Mapping[str, Any]

BINS = 10
_EDGES = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, float("inf"))
_SEED = 0


@dataclass(frozen=True)
class Scored:
    """Forecasts of one layer's items beside their hits; arrays of one entry an item."""

    expected: np.ndarray[Any, np.dtype[np.float64]]
    variance: np.ndarray[Any, np.dtype[np.float64]]
    low: np.ndarray[Any, np.dtype[np.int64]]
    high: np.ndarray[Any, np.dtype[np.int64]]
    hits: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def inside(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which items' hits lie in their interval, ends included."""
        return np.asarray((self.low <= self.hits) & (self.hits <= self.high))


def scored(items: Sequence[PlanItem], rows: Sequence[Row]) -> Scored:
    """Return the items' forecasts and hits.

    Args:
        items: Main items of one layer.
        rows: Rows of `hits` of that layer; of several targets the one that served an item most
            often counts, for all hold the same.
    """
    served: Counter[tuple[str, str]] = Counter(
        (row["item_id"], row["target"]) for row in rows if row["item_id"] is not None
    )
    most: dict[str, int] = {}
    for (item, _), count in served.items():
        most[item] = max(count, most.get(item, 0))
    return Scored(
        np.array([item.expected_micro / MICRO for item in items]),
        np.array([item.expected_variance for item in items]),
        np.array([item.expected_low for item in items], np.int64),
        np.array([item.expected_high for item in items], np.int64),
        np.array([most.get(item.item_id, 0) for item in items], np.int64),
    )


def facts(layer: Scored) -> dict[str, Any]:
    """Return the calibration of one layer."""
    hot = layer.expected >= HOT
    points = pit(layer.expected, layer.variance, layer.hits, _SEED)
    counts = np.histogram(points, BINS, (0.0, 1.0))[0]
    return {
        "items": len(layer.expected),
        "expected": round(float(layer.expected.sum()), 3),
        "realised": int(layer.hits.sum()),
        "hot": {
            "from": HOT,
            "items": int(hot.sum()),
            "inside": float(layer.inside[hot].mean()) if hot.any() else None,
        },
        "by_expected": list(_bins(layer)),
        "pit": counts.tolist(),
    }


def _bins(layer: Scored) -> list[dict[str, Any]]:
    found = []
    for low, high in pairwise(_EDGES):
        ours = (layer.expected >= low) & (layer.expected < high)
        if ours.any():
            found.append(
                {
                    "from": low,
                    "items": int(ours.sum()),
                    "expected": round(float(layer.expected[ours].mean()), 3),
                    "realised": round(float(layer.hits[ours].mean()), 3),
                    "inside": float(layer.inside[ours].mean()),
                }
            )
    return found
