"""The choice of all layers together where they share budgets, tenants' floors or caps.

Each of the log's sources takes what saves the most waiting within all budgets, without a look at
the others. What other sources name comes beside it. Where there is no room for everything, what is
pinned goes first, and then what is worth most for what it takes: so a source that is switched off
takes nothing of another one with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from warmup_lib.config import Config
from warmup_lib.plan.assembly import OF_LOG, SECONDS, TENANT, Assembly, Entrant, Shares, pools_of
from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.offer import ByHeat
from warmup_lib.plan.packing import pack
from warmup_lib.plan.points import ints
from warmup_lib.plan.problem import Problem
from warmup_lib.plan.room import with_room
from warmup_lib.plan.selection import Choice
from warmup_lib.plan.sources.united import joined_choices
from warmup_lib.plan.value import Value
from warmup_lib.tables import MICRO

if TYPE_CHECKING:
    import pyarrow as pa

_ENOUGH = 0.95
"""What sources chose apart is planned where it is worth this share of a choice for all together."""


@dataclass(frozen=True)
class Shared:
    """What was chosen.

    Attributes:
        choices: One an entrant.
        beyond: By entrant, row of a candidate -> the budget that had no room for it.
        facts: `budgets` with the limit and use of each, `saved_s` a day, its `bound_s`, the `gap`
            between the two as a share, and `short`: the items that tenants lack to their floors,
            of which `floors` tells part (layer, or layer/tier), tenant, items and floor.
        unasked: The same of floors that would hold more items than the tenant asks for.
    """

    choices: Sequence[Choice]
    beyond: Sequence[Mapping[int, str]]
    facts: Mapping[str, Any]
    unasked: Sequence[Mapping[str, Any]] = ()


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
    shares = None
    if config.plan.tenants or clusters is not None:
        shares = Shares(config.plan, clusters, _whole(entrants, config, value))
    pools = pools_of(entrants, config, value, shares)
    own = _apart(Assembly.of(entrants, pools), config, value, shares)
    named = [e.offer.named(rows, e.warm) for e, rows in zip(entrants, own, strict=True)]
    table = Assembly.of(entrants, [joined_choices(pair) for pair in zip(named, pools, strict=True)])
    by_log = table.those(own)
    cost = table.cost(config, value)
    own_only = table.each(lambda offer: offer.proposed.logged & ~offer.proposed.named)
    groups = table.groups(shares, by_log | own_only)
    worth = table.weighted(table.saved(value, table.hits))
    problem = table.problem(worth, cost, groups)
    union = by_log | table.each(lambda offer: offer.proposed.named)
    pinned = problem.with_needs(table.rows(table.each(lambda o: o.proposed.pinned), False))
    union = problem.with_needs(table.rows(union, False))
    apart = with_room(
        problem,
        union,
        table.rows(by_log, False),
        pinned,
        table.saved(value, ints(table.items["heat_micro"])),
    )
    chosen, bound = _better(problem, apart, apart & pinned)
    saved = problem.worth(chosen)
    facts = {
        "budgets": _told(list(cost), problem, chosen),
        "saved_s": round(saved / MICRO, 3),
        "bound_s": round(bound / MICRO, 3),
        "gap": round(1 - saved / bound, 6) if bound else 0.0,
        "short": problem.short(chosen),
        "floors": table.below(groups[TENANT], list(config.plan.tenants), chosen)
        if TENANT in groups
        else [],
    }
    names = [*groups, *cost]
    choices = table.choices(chosen, by_log | own_only)
    unasked = table.unasked(groups[TENANT], shares) if shares and TENANT in groups else ()
    return Shared(choices, _beyond(problem, chosen, names, table), facts, unasked)


def _whole(entrants: Sequence[Entrant], config: Config, value: Value) -> Ints:
    """Return how many items of each entrant there is room for: what floors and caps are shares of.

    They are what the log asks for, under all limits and budgets, without floors and caps. Which
    sources propose them makes no difference: none that is switched off changes the others' shares.
    """
    asked = [
        replace(one, offer=ByHeat(one.asked, one.offer.proposed.room(one.offer.limit)))
        for one in entrants
    ]
    table = Assembly.of(asked, [one.offer.pool(one.warm, None, {}) for one in asked])
    if not len(table.part):  # lists alone: there is nothing but the limits to go by
        return np.array([one.offer.limit for one in asked], np.int64)
    every = np.ones(len(table.part), np.bool_)
    worth = table.saved(value, table.hits)
    problem = table.problem(worth, table.cost(config, value), table.groups(None, every))
    return np.array([len(rows) for rows in table.chosen(pack(problem).rows)], np.int64)


def _apart(table: Assembly, config: Config, value: Value, shares: Shares | None) -> list[Ints]:
    """Return by entrant what each source of the log chooses as if there were no other one."""
    every = np.ones(len(table.part), np.bool_)
    groups = table.groups(shares, every)
    saved = table.saved(value, table.hits)
    problem = table.problem(saved, table.cost(config, value), groups)
    source = table.rows(table.each(lambda offer: offer.proposed.of_log), -1)
    nothing = chosen = np.zeros(table.count, np.bool_)
    for one in np.unique(source[: len(every)]):
        free = problem.with_needs(source == one)
        found = pack(problem.rest(nothing, free))
        chosen = chosen.copy()
        chosen[np.flatnonzero(free)[found.rows]] = True
    return table.chosen(chosen)


def _better(problem: Problem, apart: Mask, pinned: Mask) -> tuple[Mask, int]:
    """Return what was chosen apart, or together where that is much better, and what bounds both.

    It is where several budgets, caps and floors are full at once.
    """
    free = ~pinned
    best = pack(problem.rest(pinned, free))
    together = pinned.copy()
    together[free] = best.rows
    enough = problem.worth(apart) >= _ENOUGH * problem.worth(together)
    chosen = apart if enough and problem.short(apart) <= best.short else together
    return chosen, max(problem.worth(pinned) + best.bound, problem.worth(chosen))


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
    it is the one of which the item takes the most. What is left to traffic is no budget's.
    """
    left = problem.limit - problem.used(chosen)
    whole = problem.whole(np.where(chosen, 0, problem.cost))
    full = [np.append(g.count(chosen) >= g.most, False)[g.of] for g in problem.groups]
    full += [taken > room for taken, room in zip(whole, left, strict=True)]
    said = np.zeros(table.count, np.int64)
    if len(left):
        said = len(problem.groups) + np.argmax(whole / (left[:, None] + 1), axis=0)
    caps = len(problem.groups)
    for place in [*range(len(full) - 1, caps - 1, -1), *range(caps)]:
        said[full[place]] = place
    out = ~chosen[: len(table.part)]
    natural = table.each(lambda offer: np.full(len(offer.proposed.by), offer.proposed.natural))
    out &= ~natural | (said[: len(out)] != names.index(OF_LOG))
    return [
        {
            int(pool.rows[n]): names[said[row]]
            for n, row in enumerate(np.flatnonzero(table.part == part).tolist())
            if out[row]
        }
        for part, pool in enumerate(table.pools)
    ]
