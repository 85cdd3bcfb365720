"""What a choice takes and holds, counted by hand."""

from __future__ import annotations

import numpy as np

from warmup_lib.plan.problem import NO_CAP, Chosen, Groups, Problem, pruned


def mask(*rows: int, of: int = 5) -> np.ndarray:
    return np.isin(np.arange(of), rows)


# A stem (0) that two heads (1, 2) begin with; 3 begins with 2; 4 is alone.
TREE = Problem(
    value=np.array([0, 5, 7, 2, 9]),
    cost=np.array([[10, 1, 2, 3, 40], [0, 1, 1, 1, 1]]),
    limit=np.array([16, 3]),
    needs=np.array([-1, 0, 0, 2, -1]),
    groups=(Groups(np.array([-1, 0, 0, 1, 1]), np.array([1, 1]), np.array([2, NO_CAP])),),
)


def test_what_is_shared_is_paid_for_once() -> None:
    assert TREE.used(mask(0, 1, 2, 3)).tolist() == [16, 3]
    assert TREE.worth(mask(0, 1, 2, 3)) == 14
    assert TREE.allowed(mask(0, 1, 2, 3))
    assert not TREE.allowed(mask(1))
    assert not TREE.allowed(mask(0, 3))
    assert not TREE.allowed(mask(4))


def test_depths_and_what_can_never_fit() -> None:
    assert [rows.tolist() for rows in TREE.depths] == [[1, 2], [3]]
    assert TREE.usable.tolist() == [True, True, True, True, False]


def test_floors_count_what_is_missing_and_give_way() -> None:
    assert TREE.short(mask(0, 1)) == 1
    assert TREE.short(mask(0, 2, 3)) == 0
    relaxed = TREE.relaxed(mask(0, 1))
    assert relaxed.groups[0].least.tolist() == [1, 0]


def test_filling_floors_counts_rows_up_to_them() -> None:
    assert TREE.floored.tolist() == [0, 1, 1, 1, 1]
    upto = TREE.upto_floors(TREE.floored)
    assert upto.value.tolist() == [0, 1, 1, 1, 1]
    assert (upto.groups[0].least.tolist(), upto.groups[0].most.tolist()) == ([0, 0], [1, 1])


def test_caps_are_kept() -> None:
    tight = Problem(
        TREE.value,
        TREE.cost,
        TREE.limit,
        TREE.needs,
        (Groups(np.array([-1, 0, 0, 0, 0]), np.array([0]), np.array([2])),),
    )
    assert tight.allowed(mask(0, 1, 2))
    assert not tight.allowed(mask(0, 1, 2, 3))


def test_stems_that_nothing_needs_are_dropped_and_counted_rows_are_kept() -> None:
    assert pruned(TREE, mask(0, 4)).tolist() == mask(4).tolist()
    assert pruned(TREE, mask(0, 1)).tolist() == mask(0, 1).tolist()
    chain = Problem(
        np.array([0, 0, 0]), np.ones((1, 3), int), np.array([3]), np.array([-1, 0, 1]), ()
    )
    assert pruned(chain, mask(0, 1, 2, of=3)).tolist() == [False, False, False]
    counted = Problem(
        chain.value,
        chain.cost,
        chain.limit,
        chain.needs,
        (Groups(np.array([-1, -1, 0]), np.array([1]), np.array([1])),),
    )
    assert pruned(counted, mask(0, 1, 2, of=3)).tolist() == [True, True, True]


def test_gap_is_the_share_of_the_bound_that_is_missing() -> None:
    assert Chosen(mask(0), 95, 100, 0).gap == 1 - 95 / 100
    assert Chosen(mask(), 0, 0, 0).gap == 0.0
