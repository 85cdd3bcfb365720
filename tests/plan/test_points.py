"""Demand is laid out by tenant, context and guard signature, each group in digest order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.plan import building
from tests.plan.building import rows_of
from warmup_lib.plan import points as points_module
from warmup_lib.plan.points import Points, lay_out
from warmup_lib.tables import INT, PLAN


def prompt(digest: str, requests: int = 1, **columns: Any) -> dict[str, Any]:
    return building.prompt(digest, requests, **{"text": "how do I pay", **columns})


class Numbered:
    """The vector of `t-7` begins with 7."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def matrix(self, digests: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        self.asked.append(list(digests))
        return np.array([[int(d[2:]), 0] for d in digests], np.float32)


def points(rows: Sequence[dict[str, Any]], warm: Sequence[dict[str, Any]] = ()) -> Points:
    heat = pa.array([row["requests"] for row in rows], INT)
    free = [{**r, "key_digest": r["response_digest"]} for r in rows if not r.get("unwarmable")]
    held = [{**r, "key_digest": r["response_digest"]} for r in warm]
    table = rows_of("prompts", rows).append_column("heat_micro", heat)
    return lay_out(table, rows_of("plan", free), rows_of("plan", held) if warm else PLAN.empty())


def groups(made: Points) -> list[list[str]]:
    texts = made.text.to_pylist()
    ends = made.starts.tolist()
    return sorted(texts[a:b] for a, b in pairwise(ends))


ROWS = [
    prompt("3", 5),
    prompt("1", 2),
    prompt("2", 4, tenant="other"),
    prompt("4", 1, context_digest="else"),
    prompt("5", 9, text="pay 5 euro"),
    prompt("6", 7, unwarmable="redacted"),
]


def test_groups_and_their_order() -> None:
    made = points(ROWS)
    assert groups(made) == [["t-1", "t-3", "t-6"], ["t-2"], ["t-4"], ["t-5"]]
    assert [made.text[int(r)].as_py() for r in np.argsort(made.rank)] == [
        f"t-{n}" for n in range(1, 7)
    ]
    by_text = dict(zip(made.text.to_pylist(), made.candidate.tolist(), strict=True))
    assert by_text == {"t-3": 0, "t-1": 1, "t-2": 2, "t-4": 3, "t-5": 4, "t-6": -1}


def test_totals_tell_which_groups_are_read_first() -> None:
    made = points([*ROWS, prompt("7", 90, context_digest="else")])
    totals = made.totals(made.heat)
    assert sorted(totals.tolist()) == [4, 9, 14, 91]
    assert totals[made.shared(totals)].tolist() == [91, 14]
    assert sorted(made.heat[made.alone()].tolist()) == [4, 9]
    nothing = made.totals(np.zeros_like(made.heat))
    assert made.shared(nothing).tolist() == []


@pytest.mark.parametrize(("held", "reads"), [(1, 2), (5, 1)])
def test_vectors_are_read_in_bounded_batches(
    held: int, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = points([*ROWS, prompt("7", 90, context_digest="else")])
    monkeypatch.setattr(points_module, "HELD", held)
    vectors = Numbered()
    found = list(made.groups(made.shared(made.totals(made.heat)).tolist(), vectors))
    assert [matrix[:, 0].tolist() for _, matrix in found] == [[4, 7], [1, 3, 6]]
    for rows, matrix in found:
        assert [f"t-{int(n)}" for n in matrix[:, 0]] == made.text.to_pylist()[rows]
    assert len(vectors.asked) == reads


def test_warm_items_that_nobody_asks_for_are_added_without_heat() -> None:
    made = points(ROWS, [prompt("3"), prompt("8"), prompt("9", tenant="other")])
    assert groups(made) == [["t-1", "t-3", "t-6", "t-8"], ["t-2", "t-9"], ["t-4"], ["t-5"]]
    assert int(made.heat.sum()) == 28
    items = rows_of("plan", [{"tenant": "acme", "key_digest": d} for d in ("8", "1", "2")])
    assert sorted(np.asarray(made.text)[made.holding(items)].tolist()) == ["t-1", "t-8"]


def test_near_duplicates_are_numbered_alike() -> None:
    rows = [prompt("1", near_of="t-2"), prompt("2", near_of="t-3"), prompt("3"), prompt("4")]
    made = points(rows)
    family = dict(zip(made.text.to_pylist(), made.family.tolist(), strict=True))
    assert family["t-1"] == family["t-2"] == family["t-3"] != family["t-4"]


def test_no_demand_is_no_group() -> None:
    made = points([])
    assert made.starts.tolist() == [0]
    assert made.alone().tolist() == []
    assert list(made.groups([], Numbered())) == []
