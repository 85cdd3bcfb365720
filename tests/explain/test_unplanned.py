"""Why there was no item: left out, planned otherwise, near, almost the same, or never seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.explain.made import ENCODER, KEYS, NOON, QUESTION, asked, item, looked, miss, standing
from warmup_lib.causes import Cause
from warmup_lib.distil.templates import head_digest
from warmup_lib.distil.volatile import Head
from warmup_lib.explain.closeness import Closeness
from warmup_lib.explain.history import History
from warmup_lib.explain.leftout import LeftOut
from warmup_lib.explain.miss import Miss, Verdict
from warmup_lib.explain.nearest import Nearest
from warmup_lib.explain.otherwise import Otherwise
from warmup_lib.explain.unplanned import Unplanned
from warmup_lib.keys import Request
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem, Vector
from warmup_lib.tables import CHUNKS, HEADS, LEFT_OUT, PROMPTS, REQUESTS

DAY = "2026-03-15"
ANGLES = {
    "How do I freeze my card, please?": 0.0,
    "How can I freeze the card I have?": 15.0,  # cosine 0.966
    "Where may one find the card's number?": 30.0,  # 0.866
    "How do I unfreeze my card, please?": 10.0,  # 0.985, the opposite
    "What is the weather like?": 80.0,
}


class Angles:
    """Vectors of the texts above, by their angle."""

    encoder = ENCODER
    dimension = 2

    def get(self, digests: Sequence[str]) -> Mapping[str, Vector]:
        by_digest = {KEYS.text_digest(text): angle for text, angle in ANGLES.items()}
        return {d: _vector(by_digest[d]) for d in digests if d in by_digest}


def _vector(degrees: float) -> Vector:
    at = np.deg2rad(degrees)
    return np.array([np.cos(at), np.sin(at)], dtype=np.float32)


def no_vectors(texts: Sequence[str]) -> Any:
    return np.zeros((len(texts), 2), np.float32), np.zeros(len(texts), bool)


def of(prompt: str, **fields: Any) -> Request:
    return replace(QUESTION, prompt=prompt, **fields)


class World:
    """A lake with a history, and a plan of some items."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(str(folder))
        self.known: list[Request] = []
        self.left_out: list[tuple[str, str, str]] = []
        self.unwarmable: dict[str, str] = {}
        self.items: list[PlanItem] = []
        self.chunks: list[str] = []
        self.histories: list[History] = []

    def write(self) -> None:
        rows, heads = [], {}
        for request in self.known:
            ident = KEYS.identity(request)
            digests = {
                "text_digest": ident.text,
                "context_digest": ident.context,
                "response_digest": ident.response,
                "head_digest": ident.head,
            }
            why = self.unwarmable.get(request.prompt)
            shared = {"tenant": request.tenant, "model": request.model}
            shared |= {"model_revision": request.model_revision, "adapter": request.adapter}
            rows.append(shared | digests | {"text": request.prompt, "unwarmable": why})
            place = (request.tenant, request.model, request.model_revision, request.adapter)
            head = Head(place, ident.head, request.system_prompt or "", "")
            heads[ident.head] = shared | {
                "head_digest": ident.head,
                "system_prompt": request.system_prompt,
                "template_digest": head_digest(head),
            }
        self._replace("prompts", {"day": DAY}, rows, PROMPTS.schema)
        self._replace("heads", {"day": DAY}, list(heads.values()), HEADS.schema)
        out = [
            {"layer": la, "tenant": "acme", "digest": d, "reason": r} for la, d, r in self.left_out
        ]
        self._replace("left_out", {"plan_id": "p"}, out, LEFT_OUT.schema)
        chunks = [{"tenant": "acme", "chunk_id": chunk} for chunk in self.chunks]
        self._replace("chunks", {"day": DAY}, chunks, CHUNKS.schema)
        seen = {"tenant": "acme", "user_segment": "vip", "ts": datetime(2026, 3, 15, tzinfo=UTC)}
        self._replace("requests", {"day": DAY}, [seen], REQUESTS.schema)

    def judge(self, *misses: Miss) -> list[Verdict]:
        self.write()
        held = {(i.item_id, "redis"): {**RECEIPT} for i in self.items}
        known = standing(self.items, held)
        history = History(self.lake, DAY)
        self.histories.append(history)
        nearest = Nearest(known, Angles(), no_vectors)
        closeness = Closeness(known, nearest, lambda _: 0.92)
        out, otherwise = LeftOut(self.lake, "p"), Otherwise(known, KEYS)
        return Unplanned(known, out, history, closeness, otherwise, KEYS).settle(misses)

    def cause(self, one: Miss) -> tuple[Cause, str]:
        [verdict] = self.judge(one)
        return verdict.cause, verdict.evidence

    def _replace(self, name: str, partition: Any, rows: Any, schema: pa.Schema) -> None:
        full = [dict.fromkeys(schema.names) | row for row in rows]
        self.lake.replace(name, partition, pa.Table.from_pylist(full, schema=schema))


RECEIPT = {"status": "warmed", "at": NOON, "ttl_s": 86_400, "target_epoch": "e", "error": None}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for history in made.histories:
        history.close()


def answer(prompt: str = QUESTION.prompt, **fields: Any) -> Miss:
    return miss(asked(of(prompt, **fields)))


def text(prompt: str = QUESTION.prompt, **fields: Any) -> Miss:
    return miss(asked(of(prompt, **fields)), layer="embeddings")


def head(prompt: str | None, layer: str = "prefixes", **fields: Any) -> Miss:
    return miss(asked(of("x", system_prompt=prompt, **fields)), layer=layer)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("below_budget", Cause.BELOW_BUDGET),
        ("below_budget: redis_bytes", Cause.BELOW_BUDGET),
        ("no_store", Cause.LEFT_OUT),
        ("volatile: timestamp at characters 14-38", Cause.LEFT_OUT),
        ("short_head", Cause.SUB_BLOCK),
    ],
)
def test_what_was_left_out_has_its_reason(world: World, reason: str, cause: Cause) -> None:
    one = answer()
    world.left_out = [("responses", one.asked.response_digest, reason)]
    assert world.cause(one) == (cause, f"left_out={reason}")


def test_what_was_never_asked_is_unseen(world: World) -> None:
    world.known = [of("What is the weather like?")]
    new = Verdict(Cause.UNSEEN, "history=nothing like it")
    assert world.judge(answer(), text(), head("You are new.")) == [new] * 3


def test_a_text_of_another_tenant_is_new_here(world: World) -> None:
    world.known = [replace(QUESTION, tenant="globex"), of("x")]
    assert world.cause(answer())[0] == world.cause(text())[0] == Cause.UNSEEN


def test_a_text_that_was_asked_in_other_contexts_alone_is_new_in_this_one(world: World) -> None:
    world.known = [replace(QUESTION, params={"temperature": 0}), of("x")]
    assert world.cause(answer()) == (Cause.UNSEEN, "history=its text, but in other contexts")


@pytest.mark.parametrize(
    ("before", "how"),
    [
        ("HOW DO I FREEZE MY CARD, PLEASE?", "case"),
        ("How do I freeze my card -- please!", "letters"),
        ("How do I freeze my  7 card, please?", "letters"),
        ("How do I freeze my card, pleasee?", "near"),
    ],
)
@pytest.mark.parametrize("layer", ["responses", "embeddings"])
def test_what_is_almost_the_same_as_before_is_not_new(
    world: World, before: str, how: str, layer: str
) -> None:
    ident = KEYS.identity(of(before))
    digest = ident.response if layer == "responses" else ident.text
    world.known = [of(before)]
    world.left_out = [(layer, digest, "below_budget")]
    one = answer() if layer == "responses" else text()
    same_key = layer == "embeddings" and how == "case"
    told = "left_out=below_budget" + ("" if same_key else f" variant={how}")
    assert world.cause(one) == (Cause.BELOW_BUDGET, told)


@pytest.mark.parametrize(
    ("layer", "before", "cause"),
    [
        ("embeddings", "How do I freeze my 7 cards, please?", Cause.UNSEEN),
        ("embeddings", "How do I freeze my 6 cards please", Cause.BELOW_THRESHOLD),
        ("responses", "How do I freeze my 7 cards, please?", Cause.GUARD_REFUSED),
    ],
)
def test_the_guard_refuses_answers_alone_for_a_vector_it_is_a_new_text(
    world: World, layer: str, before: str, cause: Cause
) -> None:
    world.known, world.items = [of(before)], [item(of(before), layer)]
    prompt = "How do I freeze my 6 cards, please?"
    one = answer(prompt) if layer == "responses" else text(prompt)
    [verdict] = world.judge(one)
    assert (verdict.cause, verdict.item_id is None) == (cause, cause is Cause.UNSEEN)
    assert verdict.evidence.endswith("variant=letters planned")


def test_a_variant_in_another_context_is_no_variant_of_an_answer(world: World) -> None:
    world.known = [of("HOW DO I FREEZE MY CARD, PLEASE?", params={"temperature": 0})]
    assert world.cause(answer())[0] == Cause.UNSEEN


def test_what_was_seen_and_is_no_candidate_says_why(world: World) -> None:
    world.known, world.unwarmable = [QUESTION], {QUESTION.prompt: "redacted"}
    assert world.cause(answer()) == (Cause.LEFT_OUT, "seen=2026-03-15 unwarmable=redacted")
    world.unwarmable = {}
    assert world.cause(text()) == (Cause.LEFT_OUT, "seen=2026-03-15 no candidate of this plan")


@pytest.mark.parametrize(
    ("prompt", "cause", "told"),
    [
        ("Where may one find the card's number?", Cause.BELOW_THRESHOLD, "similarity=0.8660"),
        ("How do I unfreeze my card, please?", Cause.GUARD_REFUSED, "similarity=0.9848"),
        ("What is the weather like?", Cause.UNSEEN, "history=nothing like it"),
    ],
)
def test_near_answers_of_the_plan_tell(world: World, prompt: str, cause: Cause, told: str) -> None:
    world.items = [item()]
    got, evidence = world.cause(answer(prompt))
    assert got == cause
    assert evidence.startswith(told)


def test_an_answer_that_would_have_served_and_is_gone_says_what_became_of_it(world: World) -> None:
    world.items = [item()]
    one = answer("How can I freeze the card I have?")
    world.left_out = [("responses", one.asked.response_digest, "covered")]
    gone = miss(one.asked._replace(ts=NOON.replace(day=18)), looked("k"))
    [verdict] = world.judge(gone)
    assert (verdict.cause, verdict.item_id) == (Cause.EXPIRED, world.items[0].item_id)
    assert verdict.evidence.startswith("similarity=0.9659 ttl_s=86400")


def test_what_the_gateway_saw_of_near_answers_goes_before_a_look_now(world: World) -> None:
    world.items = [item()]
    one = asked(of("What is the weather like?"))
    near = {"similarity": 0.9, "threshold": 0.95, "nearest": "n"}
    refused = miss(one, looked("i", found="guard_refused", **near))
    below = miss(one, looked("i", found="below_threshold", **near))
    far = miss(one, looked("i", found="below_threshold", **near | {"similarity": 0.84}))
    found = [verdict.cause for verdict in world.judge(refused, below, far)]
    assert found == [Cause.GUARD_REFUSED, Cause.BELOW_THRESHOLD, Cause.UNSEEN]


def test_what_is_left_out_itself_goes_before_what_is_near(world: World) -> None:
    world.items = [item()]
    one = answer("Where may one find the card's number?")
    world.left_out = [("responses", one.asked.response_digest, "below_budget")]
    assert world.cause(one)[0] == Cause.BELOW_BUDGET


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"tenant": "acme-eu"}, Cause.KEY_TENANT),
        ({"adapter": "cards-lora"}, Cause.KEY_ADAPTER),
        ({"model_revision": "r2"}, Cause.KEY_MODEL_REVISION),
        ({"model": "m2"}, Cause.KEY_MODEL_REVISION),
        ({"params": {"temperature": 0}}, Cause.UNSEEN),
        ({"tenant": "acme-eu", "adapter": "cards-lora"}, Cause.UNSEEN),
    ],
)
def test_what_is_planned_but_for_one_thing_is_a_mismatch(
    world: World, fields: dict[str, Any], cause: Cause
) -> None:
    world.items = [item(), item(layer="prefixes", text_digest=None)]
    assert world.cause(answer(**fields))[0] == cause
    [verdict] = world.judge(head(QUESTION.system_prompt, **fields))
    if "params" not in fields:  # no part of a head
        assert verdict.cause == cause


def test_who_always_asked_so_has_demand_of_his_own(world: World) -> None:
    world.items = [item()]
    world.known = [of("another question", tenant="acme-eu")]
    assert world.cause(answer(tenant="acme-eu"))[0] == Cause.UNSEEN


def test_a_vector_is_missed_for_its_tenant_alone(world: World) -> None:
    world.items = [item()]
    assert world.cause(text(tenant="acme-eu"))[0] == Cause.KEY_TENANT
    assert world.cause(text(model_revision="r2"))[0] == Cause.UNSEEN


CLOCK = "Current time: 2026-03-{}T08:11:38Z\nYou help customers of Acme."


def test_a_system_prompt_that_is_new_each_time_is_not_new(world: World) -> None:
    before = of("x", system_prompt=CLOCK.format(14))
    world.known = [before, replace(before, prompt=QUESTION.prompt)]
    world.left_out = [("prefixes", KEYS.identity(before).head, "volatile: timestamp")]
    now = head(CLOCK.format(15))
    assert world.cause(now) == (Cause.LEFT_OUT, "left_out=volatile: timestamp variant=template")
    one = answer(system_prompt=CLOCK.format(15))
    assert world.cause(one)[0] == Cause.LEFT_OUT
    other = answer("What is the weather like?", system_prompt=CLOCK.format(15))
    assert world.cause(other)[0] == Cause.UNSEEN


def test_more_room_helps_no_head_that_is_new_each_time(world: World) -> None:
    before = of("x", system_prompt=CLOCK.format(14))
    world.known = [before]
    world.left_out = [("prefixes", KEYS.identity(before).head, "below_budget")]
    now = head(CLOCK.format(15))
    assert world.cause(now) == (Cause.LEFT_OUT, "left_out=below_budget variant=template")


def test_requests_without_a_head_share_no_block(world: World) -> None:
    assert world.cause(head(None))[0] == Cause.SUB_BLOCK


def test_segments_and_chunks_are_known_by_name(world: World) -> None:
    world.chunks = ["c1"]
    one = asked()

    def of_chunks(*chunks: str, tier: str | None = None) -> Miss:
        return miss(one._replace(chunk_ids=list(chunks)), layer="retrieval", tier=tier)

    def of_segment(name: str) -> Miss:
        return miss(one._replace(user_segment=name), layer="embeddings", tier="L2")

    misses = [of_chunks("c1"), of_chunks("c2"), of_chunks("c2", tier="L3")]
    found = world.judge(*misses, of_segment("vip"), of_segment("new"))
    assert [verdict.cause for verdict in found] == [
        Cause.LEFT_OUT,
        Cause.UNSEEN,
        Cause.LEFT_OUT,
        Cause.LEFT_OUT,
        Cause.UNSEEN,
    ]
