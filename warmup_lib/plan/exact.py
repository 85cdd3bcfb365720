"""The best choice under budgets, by integer programming (HiGHS): for problems that are small."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.problem import NO_CAP, Chosen, Problem, Reals

_MOST = 1e4
"""The largest value as the solver sees it, whose tolerances are absolute, of 1e-6."""

_NODES = 2000
_GAP = 1e-5


def exact(problem: Problem, *, nodes: int | None = None, gap: float = 0.0) -> Chosen | None:
    """Return the best choice; None: the solver gave up, or the floors can't all be reached.

    What it may spend is counted in nodes of its search tree, not in seconds: the same problem
    gets the same answer on a slow machine.

    Args:
        problem: What to choose from.
        nodes: Most nodes to look at; None: no limit.
        gap: It may stop once its choice is surely within this share of the best.
    """
    from scipy.optimize import Bounds, milp

    count = len(problem.value)
    if not count:
        nothing = np.zeros(0, np.bool_)
        return None if problem.short(nothing) else Chosen(nothing, 0, 0, 0)
    scale = _MOST / max(1, int(problem.value.max()))
    with _quiet():
        found = milp(
            -problem.value * scale,
            integrality=np.ones(count),
            bounds=Bounds(0, problem.usable.astype(float)),
            constraints=_constraints(problem),
            options={"mip_rel_gap": gap, **({} if nodes is None else {"node_limit": nodes})},
        )
    if found.x is None:
        return None
    rows = np.round(found.x) == 1
    if not problem.allowed(rows) or problem.short(rows):
        return None
    worth = problem.worth(rows)
    # The optimum is a whole number: below a bound, it is below the next one down.
    bound = np.floor(-found.mip_dual_bound / scale + 2e-6 * (1 + 1 / scale))
    return Chosen(rows, worth, max(worth, int(bound)), 0)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the solver prints by itself, past Python, out of standard output."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(nowhere)
        os.close(kept)


def improved(problem: Problem, rows: Mask, loss: Reals, size: int) -> tuple[Mask, int | None]:
    """Return the best choice that differs only where a change costs least, or the same one.

    Args:
        problem: What to choose from, its floors reached by `rows`.
        rows: An allowed choice.
        loss: (n,) about what it costs to choose a row that is not chosen, or not to one that is.
        size: How many rows may change.

    Returns:
        The choice, and a bound on every choice where all rows could change.
    """
    free = _free(problem, rows, loss, size)
    fixed = rows & ~free
    found = exact(problem.rest(fixed, free), nodes=_NODES, gap=_GAP)
    if found is None:
        return rows, None
    bound = found.bound if free[problem.usable].all() else None
    if found.value <= problem.worth(rows & free):  # of equal ones, greed takes earlier rows
        return rows, bound
    better = fixed.copy()
    better[free] = found.rows
    return better, bound


def _free(problem: Problem, rows: Mask, loss: Reals, size: int) -> Mask:
    """Return which rows may change: none that a fixed one needs, none that needs one left out."""
    free = np.zeros(len(rows), np.bool_)
    open_to = np.flatnonzero(problem.usable)
    free[open_to[np.argsort(loss[open_to], kind="stable")[:size]]] = True
    for level in reversed(problem.depths):
        held = level[rows[level] & ~free[level]]
        free[problem.needs[held]] = False
    for level in problem.depths:
        above = problem.needs[level]
        free[level] &= free[above] | rows[above]
    return free


def _constraints(problem: Problem) -> list[Any]:
    from scipy.optimize import LinearConstraint
    from scipy.sparse import coo_array, csr_array

    count = len(problem.value)
    made = []
    # In shares of its limit, no budget is of another scale than the rest.
    limits = np.maximum(problem.limit, 1)
    costs = csr_array(problem.cost / limits[:, None])
    if len(limits):
        made.append(LinearConstraint(costs, ub=problem.limit / limits))
    rows = np.flatnonzero(problem.needs >= 0)
    if len(rows):
        place = np.concatenate([np.arange(len(rows))] * 2)
        whose = np.concatenate([rows, problem.needs[rows]])
        sign = np.repeat([1.0, -1.0], len(rows))
        made.append(
            LinearConstraint(csr_array(coo_array((sign, (place, whose)), (len(rows), count))), ub=0)
        )
    for groups in problem.groups:
        inside = np.flatnonzero(groups.of >= 0)
        one = (np.ones(len(inside)), (groups.of[inside], inside))
        most = np.where(groups.most >= NO_CAP, np.inf, groups.most)
        rows_of = csr_array(coo_array(one, (len(groups.least), count)))
        made.append(LinearConstraint(rows_of, groups.least, most))
    return made
