"""What is asked for in vain is blocked, and free again once it is asked for as it should be."""

from __future__ import annotations

from typing import Any

from warmup_lib.causes import Cause
from warmup_lib.plan.blocks import WRONG, Block, Group, Looks, judge

ACME = Group("acme", "responses", None)
FIELD = "field=session_id"
FIRST, SECOND, THIRD = "2026-03-15", "2026-03-16", "2026-03-17"


def vain(digest: str | None, requests: int, day: str = FIRST, **fields: Any) -> Looks:
    told = {"group": ACME, "cause": Cause.KEY_DIMENSION, "evidence": FIELD} | fields
    return Looks(day, digest=digest, requests=requests, **told)


def right(digest: str | None, requests: int, day: str = FIRST, group: Group = ACME) -> Looks:
    return Looks(day, group, digest, requests)


def blocked(*looks: Looks) -> list[tuple[Group, frozenset[str] | None]]:
    return [(block.group, block.digests) for block in judge(looks)]


def test_a_group_that_is_only_asked_for_in_vain_is_blocked_whole() -> None:
    [block] = judge([vain("a", 2), vain("b", 1)])
    assert block == Block(ACME, None, Cause.KEY_DIMENSION, FIELD, FIRST, 3)
    assert block.reason == "key_mismatch: key_dimension"


def test_few_look_ups_block_nothing() -> None:
    assert blocked(vain("a", 2)) == []
    assert blocked(vain("a", 2), vain("a", 1, SECOND)) == [(ACME, None)]


def test_where_others_are_served_only_the_item_is_blocked() -> None:
    looks = [vain("a", 3), vain("b", 2), right("c", 1)]
    assert blocked(*looks) == [(ACME, frozenset("a"))]
    assert blocked(*looks, right("a", 1)) == []


def test_groups_are_apart() -> None:
    zeta = Group("zeta", "responses", None)
    of_tier = Group("acme", "embeddings", "L1")
    looks = [vain("a", 3), right("a", 9, group=zeta), right("a", 9, group=of_tier)]
    assert blocked(*looks) == [(ACME, None)]


def test_one_look_up_as_it_should_be_lifts_a_block_of_the_whole() -> None:
    looks = [vain("a", 90), vain("b", 1), right("b", 1, SECOND)]
    assert blocked(*looks, vain("a", 1, SECOND)) == [(ACME, frozenset("a"))]
    assert blocked(*looks) == []


def test_a_clean_day_of_the_group_frees_its_items() -> None:
    mixed = [vain("a", 3), right("c", 5)]
    assert blocked(*mixed, right("c", 5, SECOND), vain("b", 1, SECOND)) == [(ACME, frozenset("a"))]
    assert blocked(*mixed, right("c", 5, SECOND)) == []


def test_a_day_on_which_another_item_is_missed_by_one_thing_is_not_clean() -> None:
    looks = [vain("a", 3, inferred=True), right("c", 1), right("c", 1, SECOND)]
    assert blocked(*looks, vain("b", 3, SECOND, inferred=True)) == [(ACME, frozenset("ab"))]
    assert blocked(*looks) == []


def test_a_day_without_look_ups_changes_nothing() -> None:
    other = Group("zeta", "responses", None)
    assert blocked(vain("a", 3), right("a", 5, SECOND, other)) == [(ACME, None)]


def test_an_item_that_others_missed_by_one_thing_says_nothing_of_its_group() -> None:
    looks = [vain("a", 3, inferred=True, cause=Cause.KEY_MODEL_REVISION)]
    assert blocked(*looks) == [(ACME, frozenset("a"))]
    assert blocked(*looks, right("a", 1)) == []


def test_the_last_day_tells_why_and_the_most_look_ups_decide() -> None:
    looks = [
        vain("a", 9, evidence="field=ab_arm"),
        vain("a", 2, SECOND, cause=Cause.KEY_TENANT, evidence="is=a common fallback"),
        vain("b", 4, SECOND),
    ]
    [block] = judge(looks)
    assert (block.cause, block.evidence, block.day) == (Cause.KEY_DIMENSION, FIELD, SECOND)
    assert block.looks == 15


def test_items_of_one_cause_are_told_together() -> None:
    looks = [vain("a", 3), vain("b", 4, SECOND), right("c", 1), right("c", 1, SECOND)]
    [block] = judge(looks)
    assert block.digests == frozenset("ab")
    assert (block.day, block.looks) == (SECOND, 7)


def test_the_sentence_says_what_why_what_to_do_and_where_to_read_on() -> None:
    [block] = judge([vain("a", 3)])
    assert block.says == (
        "acme: nothing is planned for responses, for all 3 requests for it up to 2026-03-15 asked "
        "for another key (key_dimension: field=session_id). Keep the key's dimensions to the "
        "allow-list of docs/keys.md. The first one that does not lifts this. "
        "docs/causes.md#key_dimension"
    )
    bypass = Cause.BYPASS_MIDDLEWARE
    [item] = judge([vain("a", 3, cause=bypass, evidence="looked=none"), right("b", 1)])
    assert item.says.startswith("acme: 1 item is not planned for responses, for all 3 requests")
    assert "went past the caches (bypass_middleware: looked=none)" in item.says
    assert item.reason == "never_hit: bypass_middleware"


def test_what_makes_warming_useless_is_what_others_have_to_mend() -> None:
    assert {cause.value for cause in WRONG} == {
        "bypass_middleware",
        "key_adapter",
        "key_dimension",
        "key_encoder",
        "key_model_revision",
        "key_normalisation",
        "key_template",
        "key_tenant",
        "key_tokenisation",
    }
