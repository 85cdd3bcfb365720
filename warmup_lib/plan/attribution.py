"""Which chosen prompt will serve which request: the nearest one, as a look-up finds it.

Coverage counts for a choice what it adds to those before it. A look-up knows no order: it takes
the most similar entry. What is expected of a single item, and is later held against its hits, is
therefore counted by nearest choice. The sum over all items is the same.
"""

from __future__ import annotations

import numpy as np

from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import TILE, Floats, Ints
from warmup_lib.plan.points import Matrix, Points


def by_nearest(points: Points, vectors: Matrix, chosen: Ints, served: Mask) -> Ints:
    """Return for each row the position of the chosen row that is nearest to it, -1: not served.

    Args:
        points: The layer's demand.
        vectors: Where its vectors are.
        chosen: Rows that serve, each of them itself; ties go to the earlier one.
        served: (n,) the rows they serve together.
    """
    nearest = np.full(len(points.heat), -1, dtype=np.int64)
    nearest[chosen] = np.arange(len(chosen))
    mine = np.zeros(len(points.heat), dtype=np.int64)
    mine[chosen] = 1
    for rows, matrix in points.groups(points.shared(points.totals(mine)), vectors):
        asked = np.flatnonzero(served[rows] & (nearest[rows] < 0))
        givers = chosen[(chosen >= rows.start) & (chosen < rows.stop)]
        place = nearest[givers]
        nearest[rows.start + asked] = place[_closest(matrix, asked, givers - rows.start)]
    return nearest


def _closest(vectors: Floats, rows: Ints, givers: Ints) -> Ints:
    found = [
        np.argmax(vectors[rows[start : start + TILE]] @ vectors[givers].T, axis=1)
        for start in range(0, len(rows), TILE)
    ]
    return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)
