from __future__ import annotations

from typing import Any

import pytest

from bench.effect.report import Pair, pairs_of, whole


def part(cold: list[str], warm: list[str]) -> dict[str, Any]:
    return {
        name: {"samples": [{"request_id": ident} for ident in idents]}
        for name, idents in (("cold", cold), ("warm", warm))
    }


def test_pairs_are_the_same_request_in_both_arms() -> None:
    assert pairs_of(part(["a", "b"], ["a", "b"])) == [
        Pair({"request_id": "a"}, {"request_id": "a"}),
        Pair({"request_id": "b"}, {"request_id": "b"}),
    ]
    with pytest.raises(ValueError, match="same requests"):
        pairs_of(part(["a", "b"], ["b", "a"]))
    with pytest.raises(ValueError, match="shorter"):
        pairs_of(part(["a", "b"], ["a"]))


@pytest.mark.parametrize(
    ("cached", "found"), [(64, True), (63, False), (96, True), (None, False), (0, False)]
)
def test_a_head_is_found_where_all_its_whole_blocks_are(cached: int | None, found: bool) -> None:
    assert whole({"cached_tokens": cached, "tokens": 70}, block=32) is found


def test_a_head_shorter_than_a_block_is_never_found() -> None:
    assert not whole({"cached_tokens": 0, "tokens": 20}, block=32)
