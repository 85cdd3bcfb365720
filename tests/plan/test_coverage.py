"""Greedy coverage is exact, never worse than its bound, and does not depend on how it is cut."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.plan import neighbours
from warmup_lib.plan.coverage import Group, Picks, greedy, served_by

THRESHOLD = 0.8


def make_group(
    seed: int, count: int, topics: int = 3, *, spread: float = 0.6, dimension: int = 8
) -> Group:
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(topics, dimension))
    vectors = centres[draw.integers(0, topics, count)] + spread * draw.normal(
        size=(count, dimension)
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Group(
        vectors.astype(np.float32),
        draw.integers(0, 50, count).astype(np.int64) * 100_000,
        draw.random(count) < 0.9,
        np.arange(count, dtype=np.int64),
    )


def choose(group: Group, limit: int) -> Picks:
    asked = iter(range(limit + 1))
    return greedy(group, THRESHOLD, lambda _row, _gain: next(asked) < limit)


def adjacency(group: Group) -> np.ndarray:
    vectors = group.vectors.astype(np.float64)
    near = vectors @ vectors.T >= THRESHOLD - neighbours.ROUNDING
    np.fill_diagonal(near, True)
    return near


def covered_heat(group: Group, rows: tuple[int, ...] | list[int]) -> int:
    if not rows:
        return 0
    return int(group.heat[adjacency(group)[list(rows)].any(axis=0)].sum())


def naive_greedy(group: Group, limit: int) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < limit:
        now = covered_heat(group, chosen)
        gains = {
            row: covered_heat(group, [*chosen, row]) - now
            for row in np.flatnonzero(group.choosable)
            if row not in chosen
        }
        best = max(gains, key=lambda row: (gains[row], -row), default=None)
        if best is None or gains[best] == 0:
            break
        chosen.append(int(best))
    return chosen


def test_known_best_hub_is_chosen_before_the_hottest_text() -> None:
    angles = np.radians([0, 30, 60, 180])  # 1 serves 0 and 2; 3 is alone
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    heat = np.array([3, 1, 3, 4], dtype=np.int64)
    group = Group(vectors, heat, np.ones(4, np.bool_), np.arange(4))

    picks = choose(group, 2)

    assert picks.rows.tolist() == [1, 3]
    assert picks.gains.tolist() == [7, 4]
    assert picks.texts.tolist() == [3, 1]
    assert picks.covered_by.tolist() == [0, 0, 0, 1]


def test_unwarmable_text_is_covered_but_never_chosen() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    group = Group(
        vectors, np.array([9, 1, 5]), np.array([False, True, True]), np.arange(3, dtype=np.int64)
    )
    picks = choose(group, 3)
    assert picks.rows.tolist() == [1, 2]
    assert picks.gains.tolist() == [10, 5]


@pytest.mark.parametrize(
    ("family", "chosen"),
    [
        ([0, 1, 2, 3], [1, 0, 3]),  # strangers: all that add something
        ([0, 0, 2, 3], [1, 3]),  # 0 is a near duplicate of 1, which serves it
        ([0, 1, 2, 1], [1, 0, 3]),  # 3 is one of 1 too, but serving would miss it: it may follow
    ],
)
def test_near_duplicate_is_not_chosen_beside_the_one_that_serves_it(
    family: list[int], chosen: list[int]
) -> None:
    angles = np.radians([0, 30, 60, 170, -30])  # each serves the next by 30 degrees, 3 nobody
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    group = Group(
        vectors,
        np.array([5, 9, 7, 1, 2]),  # beside 1, row 0 would add only what it shares with 4
        np.array([True, True, False, True, False]),
        np.array([*family, 9], dtype=np.int64),
    )
    assert choose(group, 5).rows.tolist() == chosen


def test_covered_heat_counts_for_nobody() -> None:
    group = make_group(1, 30)
    first = choose(group, 3)
    warm = first.covered_by >= 0
    again = greedy(group, THRESHOLD, lambda _row, _gain: True, covered=warm)
    total = covered_heat(group, list(range(30)))
    reachable = covered_heat(group, np.flatnonzero(group.choosable).tolist())
    assert int(first.gains.sum() + again.gains.sum()) == reachable <= total
    assert not np.isin(np.flatnonzero(warm), np.flatnonzero(again.covered_by >= 0)).any()


def test_zero_vector_serves_only_itself() -> None:
    group = Group(
        np.zeros((3, 4), np.float32), np.array([1, 2, 3]), np.ones(3, np.bool_), np.arange(3)
    )
    picks = choose(group, 3)
    assert picks.rows.tolist() == [2, 1, 0]
    assert picks.texts.tolist() == [1, 1, 1]


def test_empty_group_gives_nothing() -> None:
    group = Group(
        np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros(0, np.bool_), np.arange(0)
    )
    assert choose(group, 3).rows.tolist() == []
    assert served_by(group.vectors, np.arange(0), THRESHOLD).tolist() == []


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 40), limit=st.integers(1, 12))
def test_greedy_equals_naive_greedy(seed: int, count: int, limit: int) -> None:
    group = make_group(seed, count)
    picks = choose(group, limit)
    assert picks.rows.tolist() == naive_greedy(group, limit)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 60), limit=st.integers(1, 20))
def test_no_heat_is_counted_twice_and_gains_never_rise(seed: int, count: int, limit: int) -> None:
    group = make_group(seed, count)
    picks = choose(group, limit)
    assert len(picks.rows) <= limit
    assert len(set(picks.rows.tolist())) == len(picks.rows)
    assert group.choosable[picks.rows].all()
    assert int(picks.gains.sum()) == covered_heat(group, picks.rows.tolist())
    assert (np.diff(picks.gains) <= 0).all()
    assert (picks.gains > 0).all()
    served = served_by(group.vectors, picks.rows, THRESHOLD)
    assert (served == (picks.covered_by >= 0)).all()
    assert int(picks.texts.sum()) == served.sum()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_more_budget_never_covers_less(seed: int) -> None:
    group = make_group(seed, 40)
    covered = [int(choose(group, limit).gains.sum()) for limit in range(1, 12)]
    assert covered == sorted(covered)


@pytest.mark.parametrize("tile", [1, 3, 7, 64])
def test_tile_size_does_not_change_the_choice(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    group = make_group(5, 60)
    whole = choose(group, 10)
    monkeypatch.setattr(neighbours, "TILE", tile)
    cut = choose(group, 10)
    assert cut.rows.tolist() == whole.rows.tolist()
    assert cut.gains.tolist() == whole.gains.tolist()
    assert cut.covered_by.tolist() == whole.covered_by.tolist()


def test_pair_exactly_at_the_threshold_is_a_neighbour() -> None:
    vectors = np.array([[1.0, 0.0], [0.6, 0.8]], dtype=np.float32)
    assert served_by(vectors, np.array([0]), 0.6).tolist() == [True, True]
    assert served_by(vectors, np.array([0]), 0.60001).tolist() == [True, False]
    same = np.tile(np.float32([[0.1, 0.7, 0.2, 0.3]]), (2, 1))
    same /= np.linalg.norm(same, axis=1, keepdims=True)
    assert served_by(same, np.array([0]), 1.0).all()


def test_greedy_against_the_exact_optimum() -> None:
    ratios = []
    for seed in range(40):
        group = make_group(seed, 14, topics=4)
        free = np.flatnonzero(group.choosable).tolist()
        for limit in (1, 2, 3, 4):
            best = max(
                covered_heat(group, rows) for rows in combinations(free, min(limit, len(free)))
            )
            ratios.append(int(choose(group, limit).gains.sum()) / best if best else 1.0)
    assert min(ratios) >= 1 - 1 / np.e
    assert np.mean(ratios) >= 0.99
