"""One choice out of what the log's own demand chose and what the other sources have chosen.

What a source names is planned as long as the layer has room for everything, whatever other sources
propose: so switching one off removes what only it proposed, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Ints, Neighbours
from warmup_lib.plan.points import Matrix, Points
from warmup_lib.plan.selection import Choice, Least, least_of
from warmup_lib.plan.sources.proposed import Proposed


def united(own: Choice, named: Choice, proposed: Proposed, limit: int) -> Choice:
    """Return both choices as one: first what is pinned, then by weighted hits, up to the limit.

    Args:
        own: What the log's demand chose.
        named: What else is named; no row of `own`.
        proposed: Who proposes the candidates.
        limit: Most rows.
    """
    rows, expected, texts = (
        np.concatenate([getattr(own, name), getattr(named, name)])
        for name in ("rows", "expected", "texts")
    )
    by_log = np.arange(len(rows)) < len(own.rows)
    worth = expected * proposed.weight[rows]
    order = np.lexsort((np.arange(len(rows)), -worth, ~proposed.pinned[rows]))[:limit]
    covered = np.union1d(own.covered, named.covered)
    return Choice(rows[order], expected[order], texts[order], covered, by_log[order])


def credited(choice: Choice, proposed: Proposed, by_log: Mask) -> Choice:
    """Return a choice in the order of `united`, with what the log's own demand chose of it.

    Args:
        choice: Any rows.
        proposed: Who proposes the candidates.
        by_log: (n,) which candidates the log's own demand chose.
    """
    worth = choice.expected * proposed.weight[choice.rows]
    order = np.lexsort((np.arange(len(worth)), -worth, ~proposed.pinned[choice.rows]))
    return Choice(
        choice.rows[order],
        choice.expected[order],
        choice.texts[order],
        choice.covered,
        by_log[choice.rows[order]],
    )


def joined_choices(choices: Sequence[Choice]) -> Choice:
    """Return several choices as one, each row as the first of them that holds it has it."""
    rows, expected, texts, covered = (
        np.concatenate([getattr(choice, name) for choice in choices])
        for name in ("rows", "expected", "texts", "covered")
    )
    _, first = np.unique(rows, return_index=True)
    first.sort()
    return Choice(rows[first], expected[first], texts[first], np.unique(covered))


def all_of(heat: Ints, rank: Ints, rows: Mask) -> Choice:
    """Return rows that serve by identity as a choice, hottest first.

    Args:
        heat: (n,) expected requests in millionths.
        rank: (n,) breaks ties.
        rows: (n,) what is chosen.
    """
    chosen = np.flatnonzero(rows)
    chosen = chosen[np.lexsort((rank[chosen], -heat[chosen]))]
    return Choice(chosen, heat[chosen], np.ones(len(chosen), np.int64), chosen)


def all_covering(
    points: Points, vectors: Matrix, threshold: Least, rows: Mask, served: Mask
) -> tuple[Choice, Mask]:
    """Return prompts whose answers serve similar ones as a choice, and what is served with them.

    They are taken one after another, in each group hottest first, and each is expected to serve
    what none before it does: maybe nothing.

    Args:
        points: The layer's demand.
        vectors: Where its vectors are.
        threshold: Cosine from which one prompt serves another.
        rows: (n,) the points that are chosen; each may be warmed.
        served: (n,) what is served already.
    """
    done = served.copy()
    taken: list[int] = []
    gains: list[int] = []
    texts: list[int] = []
    groups = np.flatnonzero(points.totals(rows.astype(np.int64)))
    for group, matrix in points.groups(groups.tolist(), vectors):
        near = Neighbours(matrix, least_of(threshold, group))
        inside = np.flatnonzero(rows[group])
        for row in inside[np.lexsort((points.rank[group][inside], -points.heat[group][inside]))]:
            found = np.concatenate([[row], *(n for _, n in near.of(np.array([row])))])
            new = group.start + np.unique(found.astype(np.int64))
            new = new[~done[new]]
            done[new] = True
            taken.append(group.start + int(row))
            gains.append(int(points.heat[new].sum()))
            texts.append(len(new))
    order = np.lexsort((points.rank[taken], -np.array(gains, np.int64)))
    candidate = points.candidate[done & ~served]
    choice = Choice(
        points.candidate[np.array(taken, np.int64)[order]],
        np.array(gains, np.int64)[order],
        np.array(texts, np.int64)[order],
        candidate[candidate >= 0],
    )
    return choice, done
