"""The choice of all layers together where they share budgets, tenants' floors or caps.

What is pinned goes first. The rest is what saves the most waiting within all budgets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from warmup_lib.config import Config
from warmup_lib.plan.assembly import SECONDS, Assembly, Entrant
from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.packing import pack
from warmup_lib.plan.problem import Problem
from warmup_lib.plan.selection import Choice
from warmup_lib.plan.value import Value
from warmup_lib.tables import MICRO

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Shared:
    """What was chosen.

    Attributes:
        choices: One an entrant.
        beyond: By entrant, row of a candidate -> the budget that had no room for it.
        facts: `budgets` with the limit and use of each, `saved_s` a day, its `bound_s`, the `gap`
            between the two as a share, and `short`: the items that tenants lack to their floors.
    """

    choices: Sequence[Choice]
    beyond: Sequence[Mapping[int, str]]
    facts: Mapping[str, Any]


def sharing(config: Config) -> bool:
    """Return whether layers share anything: else each one chooses by itself."""
    plan = config.plan
    return plan.budgets.shared or bool(plan.tenants) or plan.cluster_cap < 1


def choose(
    entrants: Sequence[Entrant], config: Config, value: Value, clusters: pa.Table | None
) -> Shared:
    """Choose what saves the most within all budgets.

    Args:
        entrants: What may be chosen from, at least one.
        config: The settings.
        value: What items save and take.
        clusters: `tenant`, `text_digest` and `cluster_id`; None: no cluster has a cap.
    """
    table = Assembly.of(entrants, config, value)
    cost, groups = table.cost(config, value), table.groups(config, clusters)
    problem = table.problem(cost, groups, value)
    pinned = table.rows(table.each(lambda offer: offer.proposed.pinned), False)
    for level in reversed(problem.depths):
        pinned[problem.needs[level[pinned[level]]]] = True
    chosen = np.zeros(table.count, np.bool_)
    first = pack(problem.rest(chosen, pinned))
    chosen[pinned] = first.rows
    free = ~chosen
    second = pack(problem.rest(chosen, free))
    chosen[free] = second.rows
    saved, bound = first.value + second.value, first.value + second.bound
    facts = {
        "budgets": _told(list(cost), problem, chosen),
        "saved_s": round(saved / MICRO, 3),
        "bound_s": round(bound / MICRO, 3),
        "gap": round(1 - saved / bound, 6) if bound else 0.0,
        "short": second.short,
    }
    names = [*groups, *cost]
    return Shared(table.choices(chosen), _beyond(problem, chosen, names, table), facts)


def _told(names: Sequence[str], problem: Problem, chosen: Mask) -> dict[str, dict[str, float]]:
    """Return limit and use of each budget, times in seconds."""
    pairs = zip(names, problem.limit.tolist(), problem.used(chosen).tolist(), strict=True)
    return {
        name: {"limit": most / MICRO, "used": used / MICRO}
        if name.startswith(SECONDS)
        else {"limit": most, "used": used}
        for name, most, used in pairs
    }


def _beyond(
    problem: Problem, chosen: Mask, names: Sequence[str], table: Assembly
) -> list[dict[int, str]]:
    """Say for each item that was not chosen which cap or budget had no room for it.

    It is the first that is full, the narrowest cap first. Where each has room for the item alone,
    it is the one of which the item takes the most.
    """
    left = problem.limit - problem.used(chosen)
    whole = np.where(chosen, 0, problem.cost)
    for rows in problem.depths:
        whole[:, rows] += whole[:, problem.needs[rows]]
    full = [np.append(g.count(chosen) >= g.most, False)[g.of] for g in problem.groups]
    full += [taken > room for taken, room in zip(whole, left, strict=True)]
    said = np.zeros(table.count, np.int64)
    if len(left):
        said = len(problem.groups) + np.argmax(whole / (left[:, None] + 1), axis=0)
    caps = len(problem.groups)
    for place in [*range(len(full) - 1, caps - 1, -1), *range(caps)]:
        said[full[place]] = place
    out = ~chosen[: len(table.part)]
    return [
        {
            int(pool.rows[n]): names[said[row]]
            for n, row in enumerate(np.flatnonzero(table.part == part).tolist())
            if out[row]
        }
        for part, pool in enumerate(table.pools)
    ]
