"""How far demand has moved from the current plan: whether a new one would catch much more."""

from __future__ import annotations

from collections.abc import Mapping


def drift(current: Mapping[str, int], fresh: Mapping[str, int]) -> dict[str, float]:
    """Return for each layer the share of a new plan's hits that the current plan would miss.

    Both are expected hits under the demand of today, so that the plan that was best for last
    week's demand is judged by what it still catches. 0: the current plan is as good; 1: it
    catches nothing. A layer in which a new plan would catch nothing has not drifted.

    Args:
        current: Expected hits of the current plan's items, by layer.
        fresh: Expected hits of a new plan, by layer.
    """
    return {
        layer: max(0.0, 1 - current.get(layer, 0) / hits) if hits else 0.0
        for layer, hits in fresh.items()
    }
