"""A budget counts a block once, and stems are filled before what grows from them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.layers.blocks import Chain, Fit, cut, distinct, fit, in_order

SIZE = 4

tokens = st.lists(st.integers(0, 1), max_size=24)
"""Few values, so that heads often begin alike."""

heads = st.lists(
    st.tuples(tokens, st.sampled_from(["a", "b"]), st.integers(0, 50)), min_size=1, max_size=12
)


def chains(of: Sequence[tuple[list[int], str, int]]) -> list[Chain]:
    cuts = [(cut(ids, SIZE, place), hits) for ids, place, hits in of]
    return [Chain(f"i{n}", n + 1, hits, blocks) for n, (blocks, hits) in enumerate(cuts) if blocks]


def chain(name: str, rank: int, hits: int, ids: list[int]) -> Chain:
    return Chain(name, rank, hits, cut(ids, SIZE, "m"))


@given(tokens, tokens)
def test_two_heads_share_the_blocks_that_hold_equal_beginnings(a: list[int], b: list[int]) -> None:
    first, second = cut(a, SIZE, "m"), cut(b, SIZE, "m")
    assert len(first) == len(a) // SIZE
    for n, (x, y) in enumerate(zip(first, second, strict=False), 1):
        assert (x == y) == (a[: n * SIZE] == b[: n * SIZE])
    assert not set(first) & set(cut(a, SIZE, "another salt"))


def test_the_order_of_tokens_counts_and_a_part_of_a_block_does_not() -> None:
    assert cut([1, 2, 3], 4, "m") == ()
    assert cut([1, 2, 3, 4], 4, "m") == cut([1, 2, 3, 4, 5], 4, "m")
    assert cut([2**40, 1, 2, 3], 4, "m") != cut([1, 2**40, 2, 3], 4, "m")


@given(heads, st.one_of(st.none(), st.integers(0, 40)))
def test_a_budget_counts_a_block_once(
    of: list[tuple[list[int], str, int]], budget: int | None
) -> None:
    # A block is known here by the tokens up to its end, without any digest.
    real = {
        f"i{n}": {(place, *ids[:end]) for end in range(SIZE, len(ids) + 1, SIZE)}
        for n, (ids, place, _) in enumerate(of)
    }
    whole = chains(of)
    fitted = fit(whole, budget)
    held = set().union(*(real[c.item_id] for c in fitted.chosen))
    assert fitted.used == len(held) == distinct(fitted.chosen)
    assert fitted.left == (None if budget is None else budget - len(held))
    assert {c.item_id for c in fitted.chosen} | set(fitted.beyond) == {c.item_id for c in whole}
    assert len(fitted.chosen) + len(fitted.beyond) == len(whole)
    if budget is None:
        assert not fitted.beyond
    for ident, needs in fitted.beyond.items():
        assert needs == len(real[ident] - held)
        assert budget is not None
        assert needs > budget - len(held)


@given(heads)
def test_a_stem_is_filled_once_and_before_what_grows_from_it(
    of: list[tuple[list[int], str, int]],
) -> None:
    whole = chains(of)
    ordered = in_order(whole)
    assert sorted(ordered, key=lambda c: c.rank) == whole
    filled: set[bytes] = set()
    open_stem: Sequence[bytes] = ()
    for one in ordered:
        # What was filled of it is where it leaves the head just before: nothing lies between.
        seen = sum(block in filled for block in one.blocks)
        assert set(one.blocks[:seen]) <= set(open_stem)
        filled |= set(one.blocks)
        open_stem = one.blocks
    for n, one in enumerate(ordered):
        for later in ordered[n + 1 :]:
            assert one.blocks == later.blocks or one.blocks[: len(later.blocks)] != later.blocks


def test_the_longest_shared_stem_goes_first_then_the_best_rank() -> None:
    single = chain("single", 1, 9, [9] * 16)
    short = [chain("short1", 2, 9, [1] * 4 + [2] * 4), chain("short2", 3, 9, [1] * 4 + [3] * 4)]
    long = [chain("long1", 9, 1, [0] * 8 + [5] * 4), chain("long2", 8, 1, [0] * 8 + [6] * 4)]
    other = chain("other", 5, 9, [8] * 4)
    names = [c.item_id for c in in_order([single, *short, *long, other])]
    assert names == ["long2", "long1", "short1", "short2", "single", "other"]


def test_most_hits_for_a_new_block_then_the_rank() -> None:
    stem = [0] * 40
    leaves = [chain(f"leaf{n}", n, 30, [*stem, n, n, n, n]) for n in (1, 2, 3)]
    small = chain("small", 4, 8, [7] * 4)
    rare = chain("rare", 5, 7, [8] * 4)
    twin = chain("twin", 6, 7, [9] * 4)
    fitted = fit([twin, rare, small, *leaves], 14)
    assert fitted == Fit(
        # 8, 7 and 7 hits a block; then 30 for 11, of which nothing more fits.
        [small, rare, twin, leaves[0]],
        {"leaf2": 1, "leaf3": 1},
        used=14,
        left=0,
    )
    assert [c.item_id for c in fit([twin, rare, small, *leaves], 15).chosen][3:] == [
        "leaf1",
        "leaf2",
    ]


def test_equal_heads_cost_nothing_more() -> None:
    twins = [chain("a", 1, 5, [0] * 8), chain("b", 2, 5, [0] * 8)]
    assert fit(twins, 2) == Fit(twins, {}, used=2, left=0)
    assert fit(twins, 1) == Fit([], {"a": 2, "b": 2}, used=0, left=1)
