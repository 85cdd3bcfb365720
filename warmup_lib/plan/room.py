"""What of a union budgets and caps have room for: each row is judged by what goes before it alone.

The order of two rows does not depend on others, and what is cut goes on to count for the rows
after it. So where some rows are taken out of the union, every other one that had room has it still,
unless it was there for those that need it.
"""

from __future__ import annotations

import numpy as np

from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints
from warmup_lib.plan.problem import Groups, Problem, pruned


def with_room(problem: Problem, rows: Mask, own: Mask, pinned: Mask, asked: Ints) -> Mask:
    """Return those of some rows for which there is room, in each budget and cap.

    First goes what is pinned, then what fills the floors, then what is worth most for what it
    takes.

    Args:
        problem: What there is room for.
        rows: The union, with all that it needs.
        own: What of it fills floors: what the log's own demand chose.
        pinned: What goes first.
        asked: (n,) what each row is worth to those who ask for it itself, which no other row
            changes: the order of what is pinned.
    """
    rows = rows & problem.usable
    turn = np.full(len(rows), 2, np.int64)
    for groups in problem.groups:
        turn[groups.first(rows & own, groups.least, -problem.value)] = 1
    turn[pinned] = 0
    worth = np.where(pinned, asked, problem.value)
    kept = rows.copy()
    for groups in problem.groups:
        kept &= _under(groups, rows, worth, turn)
    for budget in range(len(problem.limit)):
        kept &= _within(problem, budget, rows, worth, turn)
    for level in problem.depths:
        kept[level] &= kept[problem.needs[level]]
    return pruned(problem, kept)


def _under(groups: Groups, rows: Mask, worth: Ints, turn: Ints) -> Mask:
    under = rows & (groups.of < 0)
    under[groups.first(rows, groups.most, -worth, turn)] = True
    return under


def _within(problem: Problem, budget: int, rows: Mask, worth: Ints, turn: Ints) -> Mask:
    """Return the rows for which a budget has room; what several need is paid for by the first."""
    cost = problem.cost[budget]
    whole = problem.whole(cost)
    asking = np.flatnonzero(rows & (whole > 0))
    order = asking[np.lexsort((-worth[asking] / whole[asking], turn[asking]))]
    place = np.full(len(rows), len(order))
    place[order] = np.arange(len(order))
    for level in reversed(problem.depths):
        np.minimum.at(place, problem.needs[level], place[level])
    spent = np.zeros(len(order) + 1, np.int64)
    np.add.at(spent, place[asking], cost[asking])
    room = np.cumsum(spent) <= problem.limit[budget]
    room[-1] = True  # what takes nothing
    return np.asarray(room[place], dtype=np.bool_)
