"""The best choice under budgets, by integer programming (HiGHS): for problems that are small."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.problem import NO_CAP, Chosen, Groups, Problem, Reals

_MOST = 1e4
"""The largest value as the solver sees it, whose tolerances are absolute, of 1e-6."""

_NODES = 2000
_GAP = 1e-5


def exact(
    problem: Problem, *, short: int | None = None, nodes: int | None = None, gap: float = 0.0
) -> Chosen | None:
    """Return the best choice of those that lack the fewest rows to the floors; None: it gave up.

    What it may spend is counted in nodes of its search tree, not in seconds: the same problem
    gets the same answer on a slow machine.

    Args:
        problem: What to choose from.
        short: How many rows a choice is known to lack that is allowed; None: not known.
        nodes: Most nodes to look at, for each of its two questions; None: no limit.
        gap: It may stop once its choice is surely within this share of the best.
    """
    if not len(problem.value):
        nothing = np.zeros(0, np.bool_)
        return Chosen(nothing, 0, 0, problem.short(nothing))
    fewest, most = None, short or 0
    if short != 0 and len(_floors(problem)):
        fewest = _fewest(problem, short, nodes)
        if fewest is not None:
            most = problem.short(fewest)
        elif short is None:
            return None
    scale = _MOST / max(1, int(problem.value.max()))
    rows, dual = _solved(problem, -scale * problem.value.astype(np.float64), 0, most, nodes, gap)
    if rows is None:
        if fewest is None:
            return None
        every = problem.worth(problem.usable)
        return Chosen(fewest, problem.worth(fewest), every, most)
    worth = problem.worth(rows)
    # The optimum is a whole number: below a bound, it is below the next one down.
    bound = np.floor(-dual / scale + 2e-6 * (1 + 1 / scale))
    return Chosen(rows, worth, max(worth, int(bound)), problem.short(rows))


def _fewest(problem: Problem, short: int | None, nodes: int | None) -> Mask | None:
    """Return a choice that lacks as few rows to the floors as it finds."""
    most = problem.short(np.zeros_like(problem.usable)) if short is None else short
    return _solved(problem, np.zeros(len(problem.value)), 1, most, nodes, 0.0)[0]


def _solved(
    problem: Problem, cost: Reals, lacking: int, most: int, nodes: int | None, gap: float
) -> tuple[Mask | None, float]:
    """Return the choice that costs least, and what none costs less than.

    Args:
        problem: What to choose from.
        cost: (n,) of choosing a row.
        lacking: Cost of each row that is lacking to a floor.
        most: How many may be lacking, over all floors.
        nodes: Most nodes to look at; None: no limit.
        gap: It may stop once its choice is surely within this share of the best.
    """
    from scipy.optimize import Bounds, milp

    lacks = _floors(problem) if most else np.zeros(0, np.int64)
    with _quiet():
        found = milp(
            np.append(cost, np.full(len(lacks), lacking)),
            integrality=np.ones(len(cost) + len(lacks)),
            bounds=Bounds(0, np.append(problem.usable, lacks).astype(float)),
            constraints=_constraints(problem, most),
            options={"mip_rel_gap": gap, **({} if nodes is None else {"node_limit": nodes})},
        )
    if found.x is None:
        return None, -np.inf
    rows: Mask = np.round(found.x[: len(cost)]) == 1
    kept = problem.allowed(rows) and problem.short(rows) <= most
    return rows if kept else None, found.mip_dual_bound


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

    That which lacks fewer rows to the floors is better, then that which is worth more.

    Args:
        problem: What to choose from.
        rows: An allowed choice.
        loss: (n,) about what it costs to choose a row that is not chosen, or not to one that is.
        size: How many rows may change.

    Returns:
        The choice, and where all rows could change a bound on all that lack no more than it.
    """
    free = _free(problem, rows, loss, size)
    fixed = rows & ~free
    found = exact(problem.rest(fixed, free), short=problem.short(rows), nodes=_NODES, gap=_GAP)
    if found is None:
        return rows, None
    bound = found.bound if free[problem.usable].all() else None
    # Of equal ones, greed takes earlier rows.
    if (found.short, -found.value) >= (problem.short(rows), -problem.worth(rows & free)):
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


def _constraints(problem: Problem, most: int) -> list[Any]:
    """Return what a choice keeps to.

    Args:
        problem: What to choose from: its rows are the first variables.
        most: How many rows may be lacking. Above 0 there is a variable more for each floor, in
            their order: how many it lacks.
    """
    from scipy.optimize import LinearConstraint
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    kept = list(_kept(problem, floors=not most))
    if not most:
        return [LinearConstraint(*one) for one in kept]
    counts = vstack([_counts(groups)[groups.least > 0] for groups in problem.groups])
    least = _floors(problem)
    rows, floors = len(problem.value), len(least)
    wide = [(hstack([one, csr_array((one.shape[0], floors))]), *ends) for one, *ends in kept]
    wide.append((hstack([counts, eye_array(floors)]), least, np.inf))
    wide.append((csr_array(np.repeat([[0.0, 1.0]], [rows, floors], axis=1)), 0, most))
    return [LinearConstraint(*one) for one in wide]


def _kept(problem: Problem, *, floors: bool) -> Iterator[tuple[Any, Any, Any]]:
    """Yield rows of a matrix and what lies between their least and their most."""
    from scipy.sparse import coo_array, csr_array

    # In shares of its limit, no budget is of another scale than the rest.
    limits = np.maximum(problem.limit, 1)
    if len(limits):
        yield csr_array(problem.cost / limits[:, None]), -np.inf, problem.limit / limits
    rows = np.flatnonzero(problem.needs >= 0)
    if len(rows):
        place = np.concatenate([np.arange(len(rows))] * 2)
        whose = np.concatenate([rows, problem.needs[rows]])
        sign = np.repeat([1.0, -1.0], len(rows))
        shape = (len(rows), len(problem.value))
        yield csr_array(coo_array((sign, (place, whose)), shape)), -np.inf, 0
    for groups in problem.groups:
        most = np.where(groups.most >= NO_CAP, np.inf, groups.most)
        yield _counts(groups), groups.least if floors else -np.inf, most


def _counts(groups: Groups) -> Any:
    """Return the matrix that counts the rows in each group."""
    from scipy.sparse import coo_array, csr_array

    inside = np.flatnonzero(groups.of >= 0)
    one = (np.ones(len(inside)), (groups.of[inside], inside))
    return csr_array(coo_array(one, (len(groups.least), len(groups.of))))


def _floors(problem: Problem) -> Ints:
    """Return the floors above 0."""
    least = [np.zeros(0, np.int64), *(groups.least for groups in problem.groups)]
    every: Ints = np.concatenate(least)
    return every[every > 0]
