"""Choices made group by group are those of one greedy over everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.building import at, prompt, rows_of
from warmup_lib.plan import points as points_module
from warmup_lib.plan.coverage import COST, for_cost
from warmup_lib.plan.points import Points, lay_out
from warmup_lib.plan.selection import Choice, most_asked, most_covering, served_points
from warmup_lib.stage import silent
from warmup_lib.tables import INT, PLAN

THRESHOLD = 0.8


class Planar:
    """Vectors in a plane, by text digest; a digest that is not there has none."""

    def __init__(self, degrees: dict[str, float]) -> None:
        self.degrees = degrees
        self.asked: list[int] = []

    def matrix(self, digests: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        self.asked.append(len(digests))
        rows = [
            at(self.degrees[d]) if d in self.degrees else np.zeros(4, np.float32) for d in digests
        ]
        return np.stack(rows)


def demand(rows: Sequence[dict[str, Any]]) -> pa.Table:
    heat = pa.array([row.pop("heat", row["requests"] * 1_000_000) for row in rows], INT)
    return rows_of("prompts", rows).append_column("heat_micro", heat)


def items(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return rows_of("plan", [{**row, "key_digest": row["response_digest"]} for row in rows])


def chosen(choice: Choice, candidates: pa.Table) -> list[str]:
    return [candidates["key_digest"][int(row)].as_py() for row in choice.rows]


def choose(rows: Sequence[dict[str, Any]], vectors: Planar, limit: int, **more: Any) -> list[str]:
    prompts = demand(rows)
    candidates = items([row for row in rows if not row.get("unwarmable")])
    points = lay_out(prompts, candidates, PLAN.empty())
    return chosen(most_covering(points, vectors, THRESHOLD, limit, silent, **more), candidates)


FANS = {"t-a": 0.0, "t-b": 30.0, "t-c": 60.0, "t-d": 170.0}


def test_hub_wins_inside_its_context_only() -> None:
    rows = [prompt("a", 3), prompt("b", 1), prompt("c", 3), prompt("d", 4)]
    assert choose(rows, Planar(FANS), 2) == ["b", "d"]
    apart = [dict(row, context_digest=f"ctx-{n}") for n, row in enumerate(rows)]
    assert choose(apart, Planar(FANS), 4) == ["d", "a", "c", "b"]
    tenants = [dict(row, tenant=f"t{n}") for n, row in enumerate(rows)]
    assert choose(tenants, Planar(FANS), 4) == ["d", "a", "c", "b"]


def test_guard_keeps_numbers_and_negation_apart() -> None:
    rows = [
        prompt("a", 3, text="refund 20 euro"),
        prompt("b", 1, text="refund 30 euro"),
        prompt("c", 3, text="no refund of 30 euro"),
    ]
    same = Planar({"t-a": 0.0, "t-b": 0.0, "t-c": 0.0})
    assert choose(rows, same, 3) == ["a", "c", "b"]


def test_redacted_demand_is_covered_and_not_chosen() -> None:
    rows = [prompt("a", 9, unwarmable="redacted"), prompt("b", 1), prompt("d", 5)]
    assert choose(rows, Planar(FANS), 1) == ["b"]


def test_text_without_a_vector_serves_itself() -> None:
    rows = [prompt("a", 3), prompt("b", 2)]
    assert choose(rows, Planar({"t-a": 0.0}), 2) == ["a", "b"]


def test_near_duplicates_are_alike_whoever_stands_for_whom() -> None:
    # On one day b stood for a, on another a for c: one family. Each serves the next.
    rows = [
        prompt("a", 5, near_of="t-b"),
        prompt("b", 9),
        prompt("c", 7, near_of="t-a"),
        prompt("e", 2, unwarmable="redacted"),
    ]
    degrees = {"t-a": 0.0, "t-b": 30.0, "t-c": 60.0, "t-e": -30.0}
    assert choose(rows, Planar(degrees), 4) == ["b"]
    strangers = [dict(row, near_of=None) for row in rows]
    assert choose(strangers, Planar(degrees), 4) == ["b", "a"]


def test_ties_go_to_the_smaller_digest_across_groups() -> None:
    rows = [prompt("c", 2, context_digest="1"), prompt("a", 2, context_digest="2"), prompt("b", 2)]
    assert choose(rows, Planar({}), 2) == ["a", "b"]


def test_warm_items_serve_and_are_not_chosen_again() -> None:
    rows = [prompt("a", 3), prompt("b", 1), prompt("c", 3), prompt("d", 4)]
    vectors = Planar({**FANS, "t-z": 175.0})
    candidates = items(rows)
    warm = items([prompt("b"), prompt("z")])  # nobody asks for `z` any more; it serves d
    points = lay_out(demand(rows), candidates, warm)
    held = points.holding(warm)
    served = served_points(points, vectors, THRESHOLD, held)

    assert int(points.heat[served].sum()) == 11_000_000
    assert int(points.heat.sum()) == 11_000_000
    some = served_points(points, vectors, THRESHOLD, points.holding(items([prompt("z")])))
    assert int(points.heat[some].sum()) == 4_000_000
    more = most_covering(points, vectors, THRESHOLD, 9, silent, held=held, served=some)
    assert chosen(more, candidates) == ["a", "c"]
    assert more.expected.tolist() == [4_000_000, 3_000_000]


def test_enough_stops_at_the_first_choice_that_reaches_it() -> None:
    rows = [prompt(d, n, context_digest=d) for d, n in (("a", 5), ("b", 3), ("c", 1))]
    for enough, expected in ((0, []), (1, ["a"]), (5_000_000, ["a"]), (5_000_001, ["a", "b"])):
        assert choose(rows, Planar({}), 3, enough=enough) == expected
    assert choose(rows, Planar({}), 3, enough=10**12) == ["a", "b", "c"]


def test_groups_that_can_add_nothing_are_not_read() -> None:
    hot = [prompt(f"h{n}", 100 + n, context_digest=f"hot{n}") for n in range(5)]
    cold = [prompt(f"c{n}", 1, context_digest="cold") for n in range(50)]
    vectors = Planar({})
    assert len(choose([*hot, *cold], vectors, 5)) == 5
    assert vectors.asked == []


def test_covered_lists_what_a_choice_serves() -> None:
    rows = [prompt("a", 3), prompt("b", 1), prompt("c", 3), prompt("d", 4)]
    candidates = items(rows)
    points = lay_out(demand(rows), candidates, PLAN.empty())
    choice = most_covering(points, Planar(FANS), THRESHOLD, 1, silent)
    assert chosen(choice, candidates) == ["b"]
    assert choice.texts.tolist() == [3]
    assert sorted(choice.covered.tolist()) == [0, 1, 2]


def random_rows(seed: int, count: int) -> tuple[list[dict[str, Any]], Planar]:
    draw = np.random.default_rng(seed)
    rows = [
        prompt(
            f"{n:02}",
            int(draw.integers(0, 6)),
            tenant=f"t{draw.integers(0, 2)}",
            context_digest=f"c{draw.integers(0, 3)}",
            text=f"ask {draw.integers(0, 2)}",
            unwarmable="redacted" if draw.random() < 0.1 else None,
            near_of=f"t-{draw.integers(0, count):02}" if draw.random() < 0.3 else None,
        )
        for n in range(count)
    ]
    return rows, Planar({f"t-{n:02}": float(draw.integers(0, 40)) * 5 for n in range(count)})


def one_greedy(
    points: Points, vectors: Planar, limit: int, cost: np.ndarray[Any, Any] | None = None
) -> list[int]:
    group = np.repeat(np.arange(len(points.starts) - 1), np.diff(points.starts))
    rows = vectors.matrix(points.text.to_pylist()).astype(np.float64)
    near = (rows @ rows.T >= THRESHOLD - 1e-6) & (group[:, None] == group)
    np.fill_diagonal(near, True)
    left, free, chosen_rows = points.heat.copy(), points.candidate >= 0, []
    while len(chosen_rows) < limit:
        gains = for_cost(np.where(free, near @ left, 0), cost)
        best = min(range(len(gains)), key=lambda r: (-gains[r], points.rank[r]), default=None)
        if best is None or gains[best] == 0:
            break
        chosen_rows.append(int(points.candidate[best]))
        left[near[best]] = 0
        free[near[best] & (points.family == points.family[best])] = False
        free[best] = False
    return chosen_rows


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(0, 40),
    limit=st.integers(1, 15),
    at_once=st.sampled_from([1, 5, 1000]),
    costly=st.booleans(),
)
def test_merged_choices_equal_one_greedy(
    seed: int, count: int, limit: int, at_once: int, costly: bool
) -> None:
    rows, vectors = random_rows(seed, count)
    candidates = items([row for row in rows if not row["unwarmable"]])
    points = lay_out(demand(rows), candidates, PLAN.empty())
    dear = np.random.default_rng(seed).integers(COST, 5 * COST, len(points.heat))
    cost = dear if costly else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(points_module, "HELD", at_once)
        choice = most_covering(points, vectors, THRESHOLD, limit, silent, cost=cost)
    assert choice.rows.tolist() == (one_greedy(points, vectors, limit, cost) if count else [])
    held = points.holding(candidates.take(pa.array(choice.rows)))
    served = served_points(points, vectors, THRESHOLD, held)
    assert choice.total == points.heat[served].sum()
    assert set(choice.covered) == set(points.candidate[served]) - {-1}


def test_most_asked_takes_heat_then_rank_and_never_what_nobody_asks() -> None:
    heat = np.array([5, 9, 9, 0, 7])
    rank = np.array([0, 2, 1, 3, 4])
    nothing = np.zeros(5, np.bool_)
    assert most_asked(heat, rank, nothing, 9).rows.tolist() == [2, 1, 4, 0]
    assert most_asked(heat, rank, nothing, 2).expected.tolist() == [9, 9]
    held = np.array([False, False, True, False, False])
    assert most_asked(heat, rank, held, 2).rows.tolist() == [1, 4]
    assert most_asked(heat, rank, nothing, 9, enough=10).rows.tolist() == [2, 1]


def test_a_cheap_answer_goes_before_a_dear_one_that_covers_a_little_more() -> None:
    rows = [prompt("a", 4, context_digest="1"), prompt("b", 3, context_digest="2")]
    dear = np.array([2 * COST, COST])
    assert choose(rows, Planar({}), 1) == ["a"]
    assert choose(rows, Planar({}), 1, cost=dear) == ["b"]


def test_each_tenant_has_its_own_threshold() -> None:
    rows = [
        prompt(d, n, tenant=t, text_digest=f"t-{d}")
        for t in ("loose", "strict")
        for d, n in (("a", 3), ("b", 1), ("c", 3))
    ]
    table = demand(rows)
    points = lay_out(table, items(rows), PLAN.empty())
    own = points.by_tenant({"loose": THRESHOLD, "strict": 0.999}.__getitem__)
    choice = most_covering(points, Planar(FANS), own, 9, silent)
    candidates = items(rows)
    picked = [
        (candidates["tenant"][r].as_py(), d)
        for r, d in zip(choice.rows.tolist(), chosen(choice, candidates), strict=True)
    ]
    assert sorted(picked) == [("loose", "b"), ("strict", "a"), ("strict", "b"), ("strict", "c")]
    held = points.candidate == choice.rows[0]
    assert candidates["tenant"][int(choice.rows[0])].as_py() == "loose"
    assert served_points(points, Planar(FANS), own, held).sum() == 3
