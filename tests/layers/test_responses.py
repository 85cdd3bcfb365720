"""Answers are found by identity or by a similar question, only in the same tenant and context."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.layers.building import (
    ENCODER,
    DictVectors,
    at_cosine,
    axis,
    context,
    demand,
    head,
    items,
    lookup,
    new_keys,
    prompt,
)
from warmup_lib.config import Config, LayersConfig, RedisTarget, ResponsesConfig
from warmup_lib.keys import Keys
from warmup_lib.layers.base import Context, Lookup, Match, PlanItem
from warmup_lib.layers.responses import Responses
from warmup_lib.places import NEIGHBOURS
from warmup_lib.tables import LEFT_OUT, MICRO, PLAN
from warmup_lib.targets.store import RedisStore
from warmup_lib.threshold.force import Threshold, Thresholds

LAYER = Responses()
HOURS_48 = 48 * 3600
QUESTION = "How do I reset my password?"
SIMILAR = "How can I reset the password?"


def generating(most: int) -> Config:
    return Config(layers=LayersConfig(responses=ResponsesConfig(generate=most)))


def test_candidates_carry_what_the_entry_needs() -> None:
    keys = new_keys()
    rows = [prompt(keys, "acme", QUESTION, 2), prompt(keys, "acme", QUESTION, 3, adapter="lora")]
    assert LAYER.candidates(demand(rows), Config()).schema == PLAN.schema
    planned = items(LAYER, demand(rows))
    assert [(i.text, i.response, i.heat_micro // MICRO, i.adapter) for i in planned] == [
        (QUESTION, f"Answer to {QUESTION}", 2, None),
        (QUESTION, f"Answer to {QUESTION}", 3, "lora"),
    ]
    assert [i.key_digest for i in planned] == [r["response_digest"] for r in rows]
    assert [i.context_digest for i in planned] == [r["context_digest"] for r in rows]
    assert {(i.encoder, i.ttl_s, i.system_prompt) for i in planned} == {(ENCODER, HOURS_48, None)}
    assert len({i.item_id for i in planned}) == 2


def test_only_the_hottest_single_turns_without_an_answer_are_generated() -> None:
    keys = new_keys()
    shape: dict[str, Any] = {"response": None, "system_prompt": "Be brief."}
    tools = [{"type": "function", "function": {"name": "f"}}]
    rows = [
        prompt(keys, "acme", "cold", 1, **shape),
        prompt(keys, "acme", "hot", 5, **shape, tools=tools),
        prompt(keys, "acme", "warm", 3, response="", system_prompt="Be brief."),
        prompt(keys, "acme", "hottest, with messages before", 9, **shape | {"history": True}),
        prompt(keys, "acme", "answered", 1),
        prompt(keys, "acme", "hottest, but not to be kept", 9, **shape, unwarmable="no_store"),
    ]
    heads = [
        head(keys, "acme", "Be brief."),
        head(keys, "acme", "Be brief.", tools=json.dumps(tools), parsed_tools=tools),
    ]
    found = {i.text: i for i in items(LAYER, demand(rows, heads), generating(2))}
    assert set(found) == {"hot", "warm", "answered"}
    assert (found["hot"].system_prompt, found["hot"].tools) == ("Be brief.", json.dumps(tools))
    assert (found["warm"].system_prompt, found["warm"].tools) == ("Be brief.", None)
    assert found["answered"].system_prompt is None
    refused = LAYER.refused(demand(rows, heads), generating(2))
    assert refused.schema == LEFT_OUT.schema
    assert sorted((r["heat_micro"] // MICRO, r["reason"]) for r in refused.to_pylist()) == [
        (1, "no_answer"),
        (9, "no_answer"),
        (9, "no_store"),
    ]


def test_what_a_list_names_is_generated_beside_the_hottest_of_the_log() -> None:
    keys = new_keys()
    asked = ["hot", "cool"]
    unasked: dict[str, Any] = {"requests": 0, "response": None}
    listed = [prompt(keys, "acme", text, 0, **unasked) for text in ("pinned", "a sample")]
    listed[1]["history"] = True  # its messages are not in the plan
    rows = demand([prompt(keys, "acme", t, 9 - len(t), response=None) for t in asked] + listed)
    named = pa.array([False, False, True, True])
    rows = replace(rows, prompts=rows.prompts.append_column("listed", named))
    assert [i.text for i in items(LAYER, rows, generating(1))] == ["hot", "pinned"]
    reasons = LAYER.refused(rows, generating(1)).to_pylist()
    assert [(r["heat_micro"] // MICRO, r["reason"]) for r in reasons] == [
        (5, "no_answer"),
        (0, "no_answer"),
    ]
    # What is neither asked nor listed here, such as a sample of a classifier, is no miss.
    nobody = replace(rows, prompts=rows.prompts.drop_columns("listed"))
    assert [i.text for i in items(LAYER, nobody, generating(1))] == ["hot"]
    assert LAYER.refused(nobody, generating(1)).num_rows == 1
    without = Config(targets=[RedisTarget(name="r", url="redis://127.0.0.1:1")])
    assert LAYER.candidates(rows, without).num_rows == 0


def test_nothing_is_generated_where_no_host_is_configured() -> None:
    keys = new_keys()
    rows = demand([prompt(keys, "acme", "hot", response=None)])
    config = Config(targets=[RedisTarget(name="r", url="redis://127.0.0.1:1")])
    assert LAYER.candidates(rows, config).num_rows == 0
    assert LAYER.refused(rows, config)["reason"].to_pylist() == ["no_answer"]
    assert LAYER.candidates(rows, Config()).num_rows == 1


def test_an_answer_is_generated_only_under_an_adapter_that_a_host_names() -> None:
    keys = new_keys()
    shape: dict[str, Any] = {"response": None}
    rows = demand(
        [
            prompt(keys, "acme", "away", 9, **shape, adapter="unknown"),
            prompt(keys, "acme", "served", 5, **shape, adapter="lora"),
            prompt(keys, "acme", "no adapter", 4, **shape),
            prompt(keys, "acme", "answered", 1, adapter="unknown"),
        ]
    )
    host = {"kind": "host", "name": "h", "url": "http://h", "models": {"lora": "l-1"}}
    config = Config.model_validate(
        {"targets": [host], "layers": {"responses": {"generate": 2}}},
    )
    # The hottest of all takes no place of those that can be generated.
    assert {i.text for i in items(LAYER, rows, config)} == {"served", "no adapter", "answered"}
    refused = LAYER.refused(rows, config).to_pylist()
    assert [(r["heat_micro"] // MICRO, r["reason"]) for r in refused] == [(9, "no_answer")]


def test_parameters_are_carried_where_demand_knows_them() -> None:
    keys = new_keys()
    row = prompt(keys, "acme", "hot", params={"temperature": 0.2})
    planned = items(LAYER, demand([row | {"params": '{"temperature": 0.2}'}]))
    assert planned[0].params == '{"temperature": 0.2}'


def test_no_demand_no_rows() -> None:
    assert LAYER.candidates(demand(), Config()).num_rows == 0
    assert LAYER.refused(demand(), Config()).num_rows == 0


# -- on a real Redis ---------------------------------------------------------------------------


def warmed(
    with_store: Any,
    planned: Sequence[PlanItem],
    asked: Sequence[tuple[Lookup, Context]],
    ctx: Context,
) -> list[Match]:
    async def work(store: RedisStore) -> list[Match]:
        outcomes = await LAYER.warm(planned, store, ctx)
        assert {(o.status, o.ttl_s) for o in outcomes} == {("warmed", HOURS_48)}
        return [(await LAYER.find([one], store, c))[0] for one, c in asked]

    found: list[Match] = with_store(work)
    return found


def one_item(keys: Keys, text: str = QUESTION, **more: Any) -> tuple[list[PlanItem], Context]:
    held = {keys.text_digest(text): axis(0)}
    planned = items(LAYER, demand([prompt(keys, "acme", text, **more)]))
    return planned, context(keys, DictVectors(held=held))


@pytest.mark.stack
def test_warm_prove_and_exact_find(with_store: Any) -> None:
    keys = new_keys()
    planned, ctx = one_item(keys)

    async def work(store: RedisStore) -> Any:
        before = await LAYER.prove(planned, store, ctx)
        await LAYER.warm(planned, store, ctx)
        after = await LAYER.prove(planned, store, ctx)
        return before, after, await LAYER.find([lookup(keys, "acme", QUESTION)], store, ctx)

    (before,), (after,), (hit,) = with_store(work)
    assert (before.resident, before.evidence) == (False, "absent")
    assert (after.resident, after.evidence) == (True, f"ttl={HOURS_48}s")
    assert (hit.match, hit.item_id, hit.similarity) == ("exact", planned[0].item_id, None)
    assert hit.value == f"Answer to {QUESTION}"


@pytest.mark.stack
@pytest.mark.parametrize(
    ("cosine", "served"), [(1.0, True), (0.93, True), (0.92, True), (0.919, False), (0.0, False)]
)
def test_a_similar_question_is_served_from_the_threshold_on(
    with_store: Any, cosine: float, served: bool
) -> None:
    keys = new_keys()
    planned, ctx = one_item(keys)
    asked = lookup(keys, "acme", SIMILAR, vector=at_cosine(cosine))
    (match,) = warmed(with_store, planned, [(asked, ctx)], ctx)
    assert match.hit is served
    if served:
        assert (match.match, match.item_id) == ("semantic", planned[0].item_id)
        assert match.similarity == pytest.approx(cosine, abs=1e-5)
        assert match.value == f"Answer to {QUESTION}"


@pytest.mark.stack
@pytest.mark.parametrize(("cosine", "served"), [(0.93, False), (0.951, True)])
def test_a_tenants_calibrated_threshold_counts_before_the_configured_one(
    with_store: Any, cosine: float, served: bool
) -> None:
    keys = new_keys()
    planned, ctx = one_item(keys)
    ctx = replace(ctx, thresholds=Thresholds(0.92, {"acme": Threshold(0.95)}))
    asked = lookup(keys, "acme", SIMILAR, vector=at_cosine(cosine))
    (match,) = warmed(with_store, planned, [(asked, ctx)], ctx)
    assert match.hit is served


@pytest.mark.stack
def test_the_vector_is_looked_up_where_the_request_has_none(with_store: Any) -> None:
    keys = new_keys()
    planned, ctx = one_item(keys)
    assert isinstance(ctx.vectors, DictVectors)
    ctx.vectors.held[keys.text_digest(SIMILAR)] = at_cosine(0.95)
    asked = [(lookup(keys, "acme", text), ctx) for text in (SIMILAR, "Never seen")]
    assert [m.hit for m in warmed(with_store, planned, asked, ctx)] == [True, False]


@pytest.mark.stack
def test_nothing_but_the_same_tenant_and_context_is_served(with_store: Any) -> None:
    keys = new_keys()
    parts: dict[str, Any] = {"system_prompt": "Be brief.", "params": {"temperature": 0.5}}
    planned, ctx = one_item(keys, **parts)
    fresh = context(keys, DictVectors(held={}), control="word")
    other_encoder = context(keys, DictVectors("enc-b", held={}))
    same = lookup(keys, "acme", SIMILAR, vector=axis(0), **parts)
    history = [{"role": "user", "content": "Hi"}]
    others = {
        "tenant": lookup(keys, "beta", SIMILAR, vector=axis(0), **parts),
        "model": lookup(keys, "acme", SIMILAR, vector=axis(0), model="n", **parts),
        "adapter": lookup(keys, "acme", SIMILAR, vector=axis(0), adapter="lora", **parts),
        "system": lookup(keys, "acme", SIMILAR, vector=axis(0), params=parts["params"]),
        "params": lookup(keys, "acme", SIMILAR, vector=axis(0), system_prompt="Be brief."),
        "history": lookup(keys, "acme", SIMILAR, vector=axis(0), history=history, **parts),
        "tools": lookup(keys, "acme", SIMILAR, vector=axis(0), tools=[{"a": 1}], **parts),
    }
    asked = [(same, ctx), *[(one, ctx) for one in others.values()]]
    exact = lookup(keys, "acme", QUESTION, vector=axis(0), **parts)
    asked += [(exact, ctx), (exact, fresh), (exact, other_encoder), (same, other_encoder)]
    asked += [(lookup(keys, "beta", QUESTION, vector=axis(0), **parts), ctx)]
    found = [m.hit for m in warmed(with_store, planned, asked, ctx)]
    assert found == [True] + [False] * len(others) + [True, False, False, False, False]


@pytest.mark.stack
@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Refund order 1234", "Refund order 1235"),
        ("Can I pay with a card", "Can't I pay with a card"),
        ("我可以退货", "我不可以退货"),
        ("Freeze my card", "Unfreeze my card"),
        ("Hotels in Rome", "Hotels in Paris"),
        ("send it to Anna", "send it to Paul"),
    ],
)
def test_what_the_guard_tells_apart_is_never_served_across(
    with_store: Any, stored: str, asked: str
) -> None:
    keys = new_keys()
    planned, ctx = one_item(keys, stored)
    one = lookup(keys, "acme", asked, vector=at_cosine(0.999))
    assert [m.hit for m in warmed(with_store, planned, [(one, ctx)], ctx)] == [False]


@pytest.mark.stack
def test_any_number_of_refused_neighbours_does_not_hide_the_answer(with_store: Any) -> None:
    keys = new_keys()
    refused = [f"Refund order {n}" for n in range(NEIGHBOURS + 4)]
    rows = [prompt(keys, "acme", text) for text in [*refused, "Refund my order"]]
    planned = items(LAYER, demand(rows))
    held = {keys.text_digest(text): axis(0) for text in refused}
    held[keys.text_digest("Refund my order")] = at_cosine(0.93)
    ctx = context(keys, DictVectors(held=held))
    one = lookup(keys, "acme", "Refund the order", vector=axis(0))
    (match,) = warmed(with_store, planned, [(one, ctx)], ctx)
    answer = next(i for i in planned if i.text == "Refund my order")
    assert (match.item_id, match.match) == (answer.item_id, "semantic")


OLDER = "How do I get a new password?"


def with_older(
    keys: Keys, ours: float, older: float, text: str = QUESTION
) -> tuple[list[PlanItem], Context]:
    """Return our item and an older plan's, with the cosines of their questions with `axis(0)`."""
    planned = items(LAYER, demand([prompt(keys, "acme", text), prompt(keys, "acme", OLDER)]))
    held = {keys.text_digest(text): at_cosine(ours), keys.text_digest(OLDER): at_cosine(older)}
    return planned, context(keys, DictVectors(held=held))


@pytest.mark.stack
@pytest.mark.parametrize(
    ("text", "cosine", "found"),
    [
        (QUESTION, 0.93, QUESTION),
        (QUESTION, 0.91, OLDER),  # ours is too far away
        ("Reset password 7", 0.93, OLDER),  # the guard refuses ours
    ],
)
def test_an_older_plans_nearer_entry_does_not_hide_ours(
    with_store: Any, text: str, cosine: float, found: str
) -> None:
    keys = new_keys()
    both, ctx = with_older(keys, cosine, 0.99, text)
    by_text = {i.text: i.item_id for i in both}
    looking = replace(ctx, planned=frozenset({by_text[text]}))
    one = lookup(keys, "acme", SIMILAR, vector=axis(0))
    ours, any_plan = warmed(with_store, both, [(one, looking), (one, ctx)], ctx)
    assert (ours.match, ours.item_id) == ("semantic", by_text[found])
    assert ours.value == f"Answer to {found}"
    assert (any_plan.match, any_plan.item_id) == ("semantic", by_text[OLDER])


@pytest.mark.stack
@pytest.mark.parametrize(("cosine", "kind"), [(0.93, "semantic"), (0.91, "exact")])
def test_an_older_plans_entry_of_the_same_question_does_not_hide_ours(
    with_store: Any, cosine: float, kind: str
) -> None:
    keys = new_keys()
    both, ctx = with_older(keys, cosine, 1.0)
    by_text = {i.text: i.item_id for i in both}
    looking = replace(ctx, planned=frozenset({by_text[QUESTION]}))
    one = lookup(keys, "acme", OLDER, vector=axis(0))
    ours, any_plan = warmed(with_store, both, [(one, looking), (one, ctx)], ctx)
    served = QUESTION if kind == "semantic" else OLDER
    assert (ours.match, ours.item_id) == (kind, by_text[served])
    assert (any_plan.match, any_plan.item_id) == ("exact", by_text[OLDER])


@pytest.mark.stack
def test_without_the_search_module_only_identities_are_found(
    redis_url: str,
) -> None:
    keys = new_keys()
    planned, ctx = one_item(keys)

    class NoSearch(RedisStore):
        async def has_search(self) -> bool:
            return False

    async def work() -> list[Match]:
        store = NoSearch("cache", redis_url)
        await LAYER.warm(planned, store, ctx)
        asked = [lookup(keys, "acme", QUESTION), lookup(keys, "acme", SIMILAR, vector=axis(0))]
        found = await LAYER.find(asked, store, ctx)
        await store.close()
        return found

    assert [m.match for m in asyncio.run(work())] == ["exact", None]


@pytest.mark.stack
def test_items_that_cannot_be_written_fail_alone(with_store: Any) -> None:
    keys = new_keys()
    planned, ctx = one_item(keys)
    rows = [prompt(keys, "acme", "no vector"), prompt(keys, "acme", "no answer", response=None)]
    more = items(LAYER, demand(rows))
    assert isinstance(ctx.vectors, DictVectors)
    ctx.vectors.held[keys.text_digest("no answer")] = axis(3)

    async def work(store: RedisStore) -> Any:
        return await LAYER.warm([*more, *planned], store, ctx)

    outcomes = {o.item_id: (o.status, o.error) for o in with_store(work)}
    by_text = {i.text: outcomes[i.item_id] for i in [*more, *planned]}
    assert by_text == {
        "no vector": ("failed", "no vector of this text: embed the day again"),
        "no answer": ("skipped", "no host here serves its model"),
        QUESTION: ("warmed", None),
    }
