"""Heads share what they begin with, and take together as many tokens as there are blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.building import text_of_blocks
from warmup_lib.plan.stems import BLOCK, stems


def test_two_heads_share_a_stem_that_is_no_head_itself() -> None:
    found = stems([("t", text_of_blocks("abcx")), ("t", text_of_blocks("abcyz"))])
    assert found.above.tolist() == [2, 2, -1]
    assert (found.tokens // BLOCK).tolist() == [1, 2, 3]


def test_a_head_that_another_begins_with_is_its_stem() -> None:
    found = stems([("t", text_of_blocks("abcd")), ("t", text_of_blocks("ab"))])
    assert found.above.tolist() == [1, -1]
    assert (found.tokens // BLOCK).tolist() == [2, 2]


def test_places_share_nothing_and_a_part_of_a_block_is_not_kept() -> None:
    heads = [("t", text_of_blocks("ab") + b"rest"), ("u", text_of_blocks("ab"))]
    found = stems(heads)
    assert found.above.tolist() == [-1, -1]
    assert (found.tokens // BLOCK).tolist() == [2, 2]


def test_nothing_has_no_stems() -> None:
    assert stems([]).above.tolist() == []


@settings(max_examples=200, deadline=None)
@given(
    heads=st.lists(st.tuples(st.sampled_from("tu"), st.text("ab", max_size=6)), max_size=9),
)
def test_each_head_has_its_blocks_and_all_have_the_distinct_ones(
    heads: list[tuple[str, str]],
) -> None:
    found = stems([(place, text_of_blocks(word)) for place, word in heads])
    blocks = found.tokens // BLOCK
    for row, (_, word) in enumerate(heads):
        whole = 0
        at = row
        while at >= 0:
            whole += int(blocks[at])
            at = int(found.above[at])
        assert whole == len(word)
    distinct = {(place, word[: n + 1]) for place, word in heads for n in range(len(word))}
    assert int(blocks.sum()) == len(distinct)
    assert (blocks >= 0).all()
    assert np.isin(found.above[len(heads) :], np.arange(-1, len(found.above))).all()
