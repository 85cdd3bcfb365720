"""Requests are counted for the chosen prompt that a look-up would find for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.building import at, prompt
from tests.plan.test_selection import FANS, THRESHOLD, Planar, demand, items
from warmup_lib.plan.attribution import by_nearest
from warmup_lib.plan.points import Points, lay_out
from warmup_lib.plan.selection import served_points
from warmup_lib.tables import PLAN


def counted(points: Points, *args: Any) -> tuple[list[int], list[int]]:
    """Return heat and rows of each chosen row."""
    chosen = args[1]
    nearest = by_nearest(points, *args)
    return (
        [int(points.heat[nearest == n].sum()) for n in range(len(chosen))],
        [int((nearest == n).sum()) for n in range(len(chosen))],
    )


def points_of(rows: list[dict[str, object]]) -> Points:
    return lay_out(demand(rows), items(rows), PLAN.empty())


def test_a_text_counts_for_the_nearer_of_two_choices() -> None:
    vectors = Planar({"t-a": 0.0, "t-b": 20.0, "t-c": 30.0})
    points = points_of([prompt("a", 9), prompt("b", 2), prompt("c", 1)])
    a, c = (int(np.flatnonzero(points.candidate == row)[0]) for row in (0, 2))
    heat, texts = counted(points, vectors, np.array([a, c]), np.ones(3, np.bool_))
    assert heat == [9_000_000, 3_000_000]  # b is 20 degrees from a, 10 from c
    assert texts == [1, 2]


def test_what_nobody_serves_counts_for_nobody() -> None:
    points = points_of([prompt("a", 3), prompt("b", 1), prompt("d", 4)])
    a = np.flatnonzero(points.candidate == 0)
    served = served_points(points, Planar(FANS), THRESHOLD, points.candidate == 0)
    heat, texts = counted(points, Planar(FANS), a, served)
    assert heat == [4_000_000]
    assert texts == [2]


@given(
    degrees=st.lists(st.integers(0, 120), min_size=1, max_size=12),
    contexts=st.lists(st.integers(0, 1), min_size=12, max_size=12),
    heats=st.lists(st.integers(0, 9), min_size=12, max_size=12),
    data=st.data(),
)
def test_it_is_what_looking_at_every_pair_gives(
    degrees: list[int], contexts: list[int], heats: list[int], data: st.DataObject
) -> None:
    names = [f"p{n}" for n in range(len(degrees))]
    rows = [
        {**prompt(name, 1), "context_digest": f"c{context}", "heat": heat}
        for name, context, heat in zip(names, contexts, heats, strict=False)
    ]
    vectors = Planar({f"t-{name}": float(d) for name, d in zip(names, degrees, strict=True)})
    points = points_of(rows)
    count = len(names)
    chosen = np.array(
        data.draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True)), np.int64
    )
    held = np.zeros(count, np.bool_)
    held[chosen] = True
    served = served_points(points, vectors, THRESHOLD, held)
    nearest = by_nearest(points, vectors, chosen, served)

    group = np.searchsorted(points.starts, np.arange(count), side="right")
    where = np.stack([at(vectors.degrees[d]) for d in points.text.to_pylist()])
    for row in range(count):
        if held[row]:
            assert chosen[nearest[row]] == row
        elif not served[row]:
            assert nearest[row] == -1
        else:
            assert group[chosen[nearest[row]]] == group[row]
            same = chosen[group[chosen] == group[row]]
            best = float((where[same] @ where[row]).max())
            assert float(where[chosen[nearest[row]]] @ where[row]) >= best - 1e-6  # ties are free
