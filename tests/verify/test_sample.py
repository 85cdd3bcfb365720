"""A sample is proportional, complete, and the same for the same seed."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.verify.sample import spread, stratified

STRATA = st.lists(st.sampled_from("abcdefgh"), max_size=200)


@given(STRATA, st.integers(0, 250), st.integers(0, 5))
def test_a_sample_has_its_size_and_every_stratum_its_share(
    strata: list[str], size: int, seed: int
) -> None:
    chosen = stratified(strata, size, seed)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(size, len(strata))
    assert chosen == stratified(strata, size, seed)
    all_of, drawn = Counter(strata), Counter(strata[p] for p in chosen)
    if not chosen:
        return
    if size >= len(all_of):
        assert drawn.keys() == all_of.keys()
    else:
        assert min((all_of[s] for s in drawn), default=0) >= max(
            (count for s, count in all_of.items() if s not in drawn), default=0
        )
    for a in drawn:
        for b in drawn:
            if all_of[a] > all_of[b]:
                assert drawn[a] >= drawn[b]


def test_shares_are_rounded_by_largest_remainder() -> None:
    strata = ["a"] * 700 + ["b"] * 250 + ["c"] * 49 + ["d"]
    drawn = Counter(strata[p] for p in stratified(strata, 100, 1))
    assert drawn == {"a": 69, "b": 25, "c": 5, "d": 1}


def test_another_seed_draws_other_members() -> None:
    strata = ["a"] * 1000
    assert stratified(strata, 50, 1) != stratified(strata, 50, 2)


def test_spread_takes_even_distances() -> None:
    assert spread(10, 5) == [0, 2, 4, 6, 8]
    assert spread(3, 5) == [0, 1, 2]
    assert spread(0, 5) == []


def test_inside_a_stratum_positions_have_even_distances() -> None:
    strata = ["a", "b"] * 100
    chosen = stratified(strata, 20, 3)
    for stratum in "ab":
        of_one = [p for p in chosen if strata[p] == stratum]
        assert {b - a for a, b in itertools.pairwise(of_one)} == {20}
