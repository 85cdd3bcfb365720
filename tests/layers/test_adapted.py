"""Answers, salts and generated text follow an adapter's weights, not only its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.layers.building import (
    DictVectors,
    at_cosine,
    axis,
    context,
    demand,
    items,
    lookup,
    new_keys,
    prompt,
)
from tests.targets.tiny_host import MODEL, TinyHost
from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.layers.answers import generate
from warmup_lib.layers.base import Context, Outcome, PlanItem
from warmup_lib.layers.responses import Responses
from warmup_lib.layers.salts import salt_for
from warmup_lib.targets.chat import ChatResult
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.store import RedisStore

QUESTION, SIMILAR = "Where is my card?", "Where is my card now?"
OLD, NEW = {"lora": "lora-0123456789ab"}, {"lora": "lora-ba9876543210"}
LAYER = Responses()


def of(keys: Keys, adapters: dict[str, str], **more: Any) -> Context:
    held = {keys.text_digest(QUESTION): axis(0), keys.text_digest(SIMILAR): at_cosine(0.95)}
    return context(keys, DictVectors(held=held), adapters=adapters, **more)


@pytest.mark.stack
def test_an_answer_under_other_weights_is_not_found(with_store: Any) -> None:
    keys = new_keys()
    plan = items(LAYER, demand([prompt(keys, "acme", QUESTION, adapter="lora")]))
    asked = [lookup(keys, "acme", text, adapter="lora") for text in (QUESTION, SIMILAR)]

    async def work(store: RedisStore) -> list[list[bool]]:
        await LAYER.warm(plan, store, of(keys, OLD))
        assert [p.resident for p in await LAYER.prove(plan, store, of(keys, NEW))] == [False]
        assert [p.resident for p in await LAYER.prove(plan, store, of(keys, OLD))] == [True]
        found = [await LAYER.find(asked, store, of(keys, a)) for a in (OLD, NEW, {})]
        return [[match.hit for match in matches] for matches in found]

    assert with_store(work) == [[True, True], [False, False], [False, False]]


def test_the_salt_is_that_of_the_weights() -> None:
    keys = new_keys()
    host = ModelHost("gpu", "http://127.0.0.1:1", cache_salt="derived")
    salts = [salt_for(host, of(keys, a), "acme", "lora") for a in (OLD, NEW, {})]
    expected = [keys.salt("acme", name) for name in (OLD["lora"], NEW["lora"], "lora")]
    assert salts == expected
    assert len(set(salts)) == 3
    assert salt_for(host, of(keys, OLD), "acme", OLD["lora"]) == expected[0]


def generated(with_host: Any, tiny: TinyHost, ctx: Context, item: PlanItem) -> Any:
    async def work(host: ModelHost) -> Any:
        return (await generate([item], replace(ctx, hosts=(host,))))[item.item_id]

    return with_host(tiny.url, work, cache_salt="derived")


def test_an_answer_is_generated_by_the_present_weights_once_they_are_loaded(
    tiny: TinyHost, with_host: Any
) -> None:
    keys = new_keys()
    host = {"kind": "host", "name": "h", "url": tiny.url, "models": {"lora": "lora"}}
    config = Config.model_validate({"targets": [host]})
    row = prompt(keys, "acme", QUESTION, adapter="lora", model=MODEL, response=None)
    [item] = items(LAYER, demand([row]), config)
    tiny.finish = "stop"
    outcome = generated(with_host, tiny, of(keys, NEW), item)
    assert isinstance(outcome, Outcome)
    assert (outcome.status, outcome.error) == ("skipped", "no host here serves its adapter")
    tiny.models.append(NEW["lora"])
    answer = generated(with_host, tiny, of(keys, NEW), item)
    assert isinstance(answer, ChatResult)
    (body,) = tiny.requests
    assert body["model"] == NEW["lora"]
    assert body["cache_salt"] == keys.salt("acme", NEW["lora"])
