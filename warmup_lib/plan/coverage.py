"""Weighted maximum coverage inside one group of texts: the few that serve the most heat.

A group is what one stored answer may serve: texts of one tenant, context and guard signature. A
text covers its neighbours, those whose cosine with it reaches the serving threshold. Greedy takes
the text that covers the most uncovered heat until it is told to stop, which is never below
1 - 1/e (63 %) of the best possible set; its arithmetic is in whole numbers.

One pass over all pairs gives every text its first gain. From then on, when a choice covers new
texts, their heat is taken from the gains of their neighbours: a text is covered once, so all
choices together look at no more pairs than the first pass did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warmup_lib.plan.neighbours import Floats, Ints, Neighbours

Mask = np.ndarray[Any, np.dtype[np.bool_]]

COST = 1000
"""What the cheapest row costs."""

_NEVER = -(2**62)


@dataclass(frozen=True)
class Group:
    """Texts that may serve each other. Rows are in the order that breaks ties.

    Attributes:
        vectors: (n, d), rows of length 1; a row of zeros has no neighbour but itself.
        heat: (n,) expected requests in millionths, not negative.
        choosable: (n,) may be warmed; the others are demand that a neighbour may serve.
        family: (n,) near duplicates share a number: one is never chosen beside one it serves.
        cost: (n,) what it takes of the budgets, `COST` or more; None: all take the same.
    """

    vectors: Floats
    heat: Ints
    choosable: Mask
    family: Ints
    cost: Ints | None = None


@dataclass(frozen=True)
class Picks:
    """What greedy chose in one group.

    Attributes:
        rows: Chosen rows, best first.
        gains: Heat each one adds; never rises.
        texts: Texts each one adds, itself included.
        covered_by: (n,) position in `rows` of the first choice that covers a row, -1: none.
    """

    rows: Ints
    gains: Ints
    texts: Ints
    covered_by: Ints


def greedy(
    group: Group,
    threshold: float,
    accept: Callable[[int, int], bool],
    covered: Mask | None = None,
) -> Picks:
    """Choose rows by the uncovered heat they cover for their cost, earliest row on ties.

    Args:
        group: The texts.
        threshold: Cosine from which one text serves another.
        accept: Asked with (row, gain for its cost) before each choice; False ends the choosing.
        covered: Rows that something serves already; nobody gains by them.
    """
    done = np.zeros(len(group.heat), dtype=np.bool_) if covered is None else covered.copy()
    left = np.where(done, 0, group.heat)
    near = Neighbours(group.vectors, threshold)
    gain = near.sums(left)
    gain[~group.choosable] = _NEVER
    covered_by = np.full(len(done), -1, dtype=np.int64)
    rows: list[int] = []
    gains: list[int] = []
    texts: list[int] = []
    while len(gain):
        worth = for_cost(gain, group.cost)
        row = int(np.argmax(worth))
        if worth[row] <= 0 or not accept(row, int(worth[row])):
            break
        best = int(gain[row])
        served = np.concatenate([found for _, found in near.of(np.array([row]))])
        new = served[~done[served]]
        done[new] = True
        covered_by[new] = len(rows)
        rows.append(row)
        gains.append(best)
        texts.append(len(new))
        hot = new[left[new] > 0]
        taken = left[hot]
        left[new] = 0
        if not left.any():
            break
        for whose, neighbour in near.of(hot):
            np.subtract.at(gain, neighbour, taken[whose])
        gain[row] = _NEVER
        gain[served[group.family[served] == group.family[row]]] = _NEVER
    return Picks(_ints(rows), _ints(gains), _ints(texts), covered_by)


def for_cost(gain: Ints, cost: Ints | None) -> Ints:
    """Return gains for what they cost; those below 0 are worth nothing then."""
    return gain if cost is None else np.maximum(gain, 0) * COST // cost


def served_by(vectors: Floats, chosen: Ints, threshold: float) -> Mask:
    """Return which rows the chosen rows serve, themselves included.

    Args:
        vectors: (n, d), rows of length 1.
        chosen: Rows that are warm.
        threshold: Cosine from which one text serves another.
    """
    served = np.zeros(len(vectors), dtype=np.bool_)
    served[chosen] = True
    for _, found in Neighbours(vectors, threshold).of(chosen):
        served[found] = True
    return served


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)
