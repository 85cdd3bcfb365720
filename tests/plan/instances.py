"""Problems to choose from under budgets, floors and caps: random ones, and ones by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, eye_array, hstack, lil_array, vstack

from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.problem import NO_CAP, Groups, Problem

FLOORS = (0.04, 0.1, 0.2, 0.4, 0.8)
"""Shares of a tenant's rows that floors are at most: from hardly any to more than there is room."""


def instance(seed: int, count: int, *, tenants: int = 6, floors: float = FLOORS[0]) -> Problem:
    """Return a problem of `count` rows.

    A twentieth of the rows, 20 at most, are adapters, which take one slot each; a fifth are stems,
    blocks that several heads begin with and that are worth nothing by themselves. Values are
    heavy-tailed. The budgets hold 5 to 40 % of everything; every tenant has a floor, of that share
    of its rows at most, half a cap.
    """
    draw = np.random.default_rng(seed)
    row = np.arange(count)
    adapter = row < min(20, count // 20)
    below = (draw.random(count) < 0.6) & ~adapter & (row > 0)
    needs = np.where(below, row - 1 - (draw.random(count) * np.minimum(row, 200)).astype(int), -1)
    tenant = draw.integers(0, tenants, count)
    stem = (draw.random(count) < 0.2) & ~adapter
    value = np.where(stem, 0, draw.pareto(1.2, count) * 1e6).astype(np.int64)
    cost = np.stack(
        [
            np.where(adapter, 0, draw.integers(100, 5000, count)),
            np.where(adapter | (draw.random(count) < 0.5), 0, draw.integers(1, 400, count)),
            draw.integers(1, 50, count),
            adapter.astype(np.int64),
        ]
    )
    limit = (cost.sum(axis=1) * draw.uniform(0.05, 0.4, 4)).astype(np.int64)
    limit[3] = adapter.sum() // 3
    made = Problem(value, cost, limit, needs)
    for rows in made.depths:
        tenant[rows] = tenant[needs[rows]]
    of = np.where(stem, -1, tenant)
    sizes = np.bincount(of[of >= 0], minlength=tenants)
    least = (sizes * draw.uniform(0, floors, tenants)).astype(np.int64)
    most = (sizes * draw.uniform(0.1, 0.5, tenants)).astype(np.int64)
    capped = np.maximum(least, np.where(draw.random(tenants) < 0.5, most, NO_CAP))
    return replace(made, groups=(Groups(of, least, capped),))


def brute(problem: Problem) -> tuple[int, int]:
    """Return what the best choice lacks to the floors and what it is worth, by trying all."""
    count = len(problem.value)
    every = ((bits >> np.arange(count)) & 1 == 1 for bits in range(2**count))
    best = min((problem.short(r), -problem.worth(r)) for r in every if problem.allowed(r))
    return best[0], -best[1]


def optimum(problem: Problem) -> tuple[int, int]:
    """Return the same for larger problems, by integer programming (HiGHS)."""
    count = len(problem.value)
    every = [(g.of == n, g.least[n], g.most[n]) for g in problem.groups for n in range(len(g.most))]
    inside = np.array([of for of, _, _ in every], float).reshape(-1, count)
    least, most = (np.array([one[n] for one in every], float) for n in (1, 2))
    below = np.flatnonzero(problem.needs >= 0)
    tree = lil_array((len(below), count))
    tree[np.arange(len(below)), below] = 1
    tree[np.arange(len(below)), problem.needs[below]] = -1
    limit = np.maximum(problem.limit, 1)
    rows = vstack([problem.cost / limit[:, None], tree, inside, inside], format="csr")
    lacks = vstack([csr_array((rows.shape[0] - len(least), len(least))), eye_array(len(least))])
    low = np.append(np.full(rows.shape[0] - len(least), -np.inf), least)
    high = np.concatenate([problem.limit / limit, np.zeros(len(below)), most, least + np.inf])
    kept = LinearConstraint(hstack([rows, lacks], format="csr"), low, high)

    def best(cost: Ints, lacking: int, upto: float) -> float:
        whole = np.append(cost, np.full(len(least), lacking))
        total = LinearConstraint(np.append(np.zeros(count), np.ones(len(least))), 0, upto)
        upper = Bounds(0, np.append(np.ones(count), least))
        exactly = {"mip_rel_gap": 0.0}
        found = milp(whole, integrality=1, bounds=upper, constraints=[kept, total], options=exactly)
        return float(found.fun)

    short = round(best(np.zeros(count, int), 1, np.inf)) if least.any() else 0
    return short, -round(best(-problem.value, 0, short))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    count, budgets = draw(st.integers(0, 9)), draw(st.integers(0, 3))
    numbers = st.lists(st.integers(0, 20), min_size=count, max_size=count)
    needs = [draw(st.integers(-1, row - 1)) for row in range(count)]
    groups = []
    for _ in range(draw(st.integers(0, 2))):
        of = draw(st.lists(st.integers(-1, 1), min_size=count, max_size=count))
        least = draw(st.lists(st.integers(0, 4), min_size=2, max_size=2))
        most = [low + draw(st.integers(0, 3)) for low in least]
        groups.append(Groups(np.array(of, int), np.array(least), np.array(most)))
    return Problem(
        np.array(draw(numbers), int),
        np.array([draw(numbers) for _ in range(budgets)], int).reshape(budgets, count),
        np.array([draw(st.integers(0, 60)) for _ in range(budgets)], int),
        np.array(needs, int),
        tuple(groups),
    )


def flat(value: list[int], cost: list[int], limit: int, *groups: Groups) -> Problem:
    needs = np.full(len(value), -1)
    return Problem(np.array(value), np.array([cost]), np.array([limit]), needs, groups)
