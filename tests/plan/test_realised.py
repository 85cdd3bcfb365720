"""What is read of earlier plans: who asked in vain, who asked right, and which windows count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plan.building import rows_of
from warmup_lib.causes import Cause
from warmup_lib.evidence import FIELD
from warmup_lib.lake import Lake
from warmup_lib.plan.blocks import Block, Group
from warmup_lib.plan.feedback import Feedback
from warmup_lib.plan.realised import read_feedback

FIRST, PLANNED, DAY = "2026-03-10", "2026-03-14", "2026-03-15"
ANSWERS = Group("acme", "responses", None)
WHOLE = {"whole_day": True, "in_sample": False}


def request(n: int, digest: str = "a", **fields: Any) -> dict[str, Any]:
    """A request whose answer, text and head have digests of one letter."""
    digests = {f"{kind}_digest": f"{kind[0]}-{digest}" for kind in ("response", "text", "head")}
    return {"request_id": f"r{n}", "tenant": "acme", **digests} | fields


def missed(n: int, cause: str = "key_dimension", **fields: Any) -> dict[str, Any]:
    told = {"layer": "responses", "evidence": "field=hour", "source": "gateway"}
    return {"request_id": f"r{n}", "tenant": "acme", "cause": cause} | told | fields


def looked(n: int, **fields: Any) -> dict[str, Any]:
    return {"request_id": f"r{n}", "tenant": "acme", "layer": "responses", "hit": True} | fields


class Told:
    """A lake with one plan, one later day, and what was measured there."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(str(folder / "lake"))
        self.meta = WHOLE
        self.window = DAY

    def write(
        self,
        *causes: dict[str, Any],
        hits: tuple[dict[str, Any], ...] = (),
        requests: tuple[dict[str, Any], ...] = (),
        items: tuple[dict[str, Any], ...] = (),
    ) -> None:
        partition = {"plan_id": "p", "window": self.window}
        meta = {"day": PLANNED, "encoder": "enc"}
        self.lake.replace("plan", {"plan_id": "p"}, rows_of("plan", items), meta)
        self.lake.replace("causes", partition, rows_of("causes", causes), self.meta)
        self.lake.replace("hits", partition, rows_of("hits", hits), self.meta)
        asked = requests or tuple(request(n) for n in range(20))
        self.lake.replace("requests", {"day": self.window}, rows_of("requests", asked))

    def read(self, day: str = DAY, encoder: str = "enc") -> Feedback:
        return read_feedback(self.lake, FIRST, day, encoder)

    def blocked(self) -> list[tuple[Group, frozenset[str] | None]]:
        return [(block.group, block.digests) for block in self.read().blocks]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


THREE = [missed(n) for n in range(3)]


def test_what_all_asked_for_in_vain_is_blocked_with_what_shows_it(told: Told) -> None:
    told.write(*THREE)
    [block] = told.read().blocks
    assert block == Block(ANSWERS, None, Cause.KEY_DIMENSION, "field=hour", DAY, 3)


def test_an_empty_lake_teaches_nothing(told: Told) -> None:
    assert told.read() == Feedback()


@pytest.mark.parametrize("meta", [{}, WHOLE | {"whole_day": False}, WHOLE | {"in_sample": True}])
def test_windows_that_are_no_later_whole_day_teach_nothing(told: Told, meta: Any) -> None:
    told.meta = meta
    told.write(*THREE)
    assert told.read() == Feedback()


def test_a_plan_learns_from_earlier_days_alone(told: Told) -> None:
    told.write(*THREE)
    assert told.read(PLANNED) == Feedback()
    assert told.read("2026-03-16").blocks
    assert read_feedback(told.lake, "2026-03-16", "2026-03-17", "enc") == Feedback()


def test_a_served_look_up_is_right_where_the_gateway_does_not_say_otherwise(told: Told) -> None:
    told.write(*THREE, hits=(looked(9),))
    assert told.blocked() == []
    told.write(*THREE, hits=(looked(9),), requests=(*map(request, range(3)), request(9, "b")))
    assert told.blocked() == [(ANSWERS, frozenset(["r-a"]))]
    wrong = request(9, extra=f'{{"{FIELD}": {{"looked": [{{"key": "wu1:x:other"}}]}}}}')
    told.write(*THREE, hits=(looked(9),), requests=(*map(request, range(3)), wrong))
    assert told.blocked() == [(ANSWERS, None)]
    right = wrong | {"extra": wrong["extra"].replace("other", "r-a")}
    told.write(*THREE, hits=(looked(9),), requests=(*map(request, range(3)), right))
    assert told.blocked() == []


def test_the_replay_of_a_miss_is_no_look_up_of_the_gateway(told: Told) -> None:
    told.write(*THREE, hits=tuple(looked(n) for n in range(3)))
    assert told.blocked() == [(ANSWERS, None)]
    told.write(*THREE, missed(9, "below_budget", source="replay"), hits=(looked(9, hit=False),))
    assert told.blocked() == [(ANSWERS, None)]


def test_a_miss_that_is_not_explained_yet_shows_nothing(told: Told) -> None:
    told.write(*THREE, hits=tuple(looked(n, hit=False) for n in range(6)))
    assert told.blocked() == [(ANSWERS, None)]
    its_key = f'{{"{FIELD}": {{"looked": [{{"key": "wu1:x:r-a"}}]}}}}'
    asked = (*map(request, range(5)), request(5, extra=its_key))
    told.write(*THREE, hits=tuple(looked(n, hit=False) for n in range(6)), requests=asked)
    assert told.blocked() == []


def test_a_request_counts_once_whatever_is_said_of_it(told: Told) -> None:
    causes = ["key_dimension", "key_adapter", "key_template"]
    told.write(*[missed(0, cause, evidence=f"{n}") for n, cause in enumerate(causes)])
    assert told.blocked() == []
    told.write(*[missed(n, cause, evidence=f"{n}") for n, cause in enumerate(causes)])
    assert told.blocked() == [(ANSWERS, None)]


@pytest.mark.parametrize("cause", ["not_applied", "left_out", "unseen", "evicted", "guard_refused"])
def test_who_missed_for_another_reason_asked_right(told: Told, cause: str) -> None:
    told.write(*THREE, missed(9, cause))
    assert told.blocked() == []


@pytest.mark.parametrize("cause", ["bypass_header", "host_not_ready", "unknown"])
def test_causes_that_do_not_show_the_key_show_nothing(told: Told, cause: str) -> None:
    told.write(*THREE, missed(9, cause))
    assert told.blocked() == [(ANSWERS, None)]


def test_who_was_planned_for_another_revision_is_blocked_and_not_its_tenant(told: Told) -> None:
    """The requests name what they want: next night it is planned under what they name."""
    old = {"item_id": "responses-1", "layer": "responses", "tenant": "acme", "key_digest": "r-old"}
    of_old = {"cause": "key_model_revision", "item_id": "responses-1", "source": "replay"}
    told.write(*[missed(n, **of_old) for n in range(3)], items=(old,))
    assert told.blocked() == [(ANSWERS, frozenset(["r-old"]))]
    told.write(
        *[missed(n, **of_old) for n in range(3)],
        items=(old,),
        hits=(looked(9),),
        requests=(*map(request, range(3)), request(9, "old")),
    )
    assert told.blocked() == []


def test_its_own_item_is_the_requests_own(told: Told) -> None:
    own = {"item_id": "responses-1", "layer": "responses", "tenant": "acme", "key_digest": "r-a"}
    told.write(*[missed(n, item_id="responses-1") for n in range(3)], items=(own,))
    assert told.blocked() == [(ANSWERS, None)]


def test_another_encoder_since_then_is_the_mending(told: Told) -> None:
    told.write(*[missed(n, "key_encoder", evidence="encoder=x own=enc") for n in range(3)])
    assert told.read(encoder="enc").blocks
    assert not told.read(encoder="new").blocks


def test_each_tier_is_by_itself_and_known_by_its_own_digest(told: Told) -> None:
    heads = {"layer": "embeddings", "tier": "L1"}
    texts = {"layer": "embeddings"}
    segments = {"layer": "embeddings", "tier": "L2"}
    told.write(
        *[missed(n, **place) for place in (heads, texts, segments) for n in range(3)],
        hits=(looked(9, **heads), looked(9, **texts)),
        requests=(*map(request, range(3)), request(9, "b")),
    )
    assert told.blocked() == [
        (Group("acme", "embeddings", "L1"), frozenset(["h-a"])),
        (Group("acme", "embeddings", "L2"), None),
        (Group("acme", "embeddings", None), frozenset(["t-a"])),
    ]


def test_past_the_caches_is_in_vain_too(told: Told) -> None:
    told.write(*[missed(n, "bypass_middleware", evidence="looked=none") for n in range(3)])
    [block] = told.read().blocks
    assert (block.group, block.reason) == (ANSWERS, "never_hit: bypass_middleware")
    silent = "evidence=none of its log has it"
    told.write(*[missed(n, "bypass_middleware", evidence=silent) for n in range(3)])
    assert told.blocked() == []


def test_what_another_tenant_asks_for_says_nothing_of_an_item(told: Told) -> None:
    theirs = {"item_id": "responses-1", "layer": "responses", "tenant": "zeta", "key_digest": "z"}
    told.write(*[missed(n, "key_tenant", item_id="responses-1") for n in range(3)], items=(theirs,))
    assert told.blocked() == []
