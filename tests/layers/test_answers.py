"""An answer is generated only for a request that the plan holds whole, and is never cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.layers.building import (
    DictVectors,
    axis,
    context,
    demand,
    head,
    items,
    lookup,
    new_keys,
    prompt,
)
from tests.targets.tiny_host import MODEL, TinyHost
from warmup_lib.config import Config, LayersConfig, ResponsesConfig
from warmup_lib.errors import HostUnavailable
from warmup_lib.keys import Keys
from warmup_lib.layers.answers import generate
from warmup_lib.layers.base import Outcome, PlanItem
from warmup_lib.layers.responses import Responses
from warmup_lib.stack.state import StackState
from warmup_lib.targets.chat import ChatResult
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.store import RedisStore

SYSTEM = "Be brief."
TOOLS = [{"type": "function", "function": {"name": "f"}}]
PARAMS = {"temperature": 0.7, "stop": ["END"], "max_tokens": 400.0, "top_p": 0.5}
CONFIG = Config(layers=LayersConfig(responses=ResponsesConfig(max_tokens=12)))


def unanswered(keys: Keys, model: str = MODEL, **columns: Any) -> PlanItem:
    parts = {"system_prompt": SYSTEM, "tools": TOOLS, "params": PARAMS, "model": model}
    row = prompt(keys, "acme", "Is it open?", response=None, **parts)
    row |= {"params": json.dumps(PARAMS)} | columns
    heads = [head(keys, "acme", SYSTEM, tools=json.dumps(TOOLS), parsed_tools=TOOLS, model=model)]
    return items(Responses(), demand([row], heads), CONFIG)[0]


def generated(with_host: Any, tiny: TinyHost, item: PlanItem, keys: Keys, **settings: Any) -> Any:
    async def work(host: ModelHost) -> Any:
        ctx = context(keys, DictVectors(), CONFIG, hosts=(host,))
        return (await generate([item], ctx))[item.item_id]

    return with_host(tiny.url, work, **settings)


def test_the_request_is_the_logged_one_at_temperature_0(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    tiny.answer, tiny.finish = " Yes, until six. ", "stop"
    answer = generated(with_host, tiny, unanswered(keys), keys, cache_salt="derived")
    assert isinstance(answer, ChatResult)
    assert answer.text == "Yes, until six."
    (body,) = tiny.requests
    assert body.pop("messages") == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Is it open?"},
    ]
    assert body.pop("priority") > 0
    assert body == {
        "model": MODEL,
        "temperature": 0,
        "stop": ["END"],
        "max_tokens": 12,
        "tools": TOOLS,
        "cache_salt": keys.salt("acme"),
    }


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("Yes. It is open until", "Yes."),
        ("Version 2.5 is out. Get", "Version 2.5 is out."),
        ("开门。到六点", "开门。"),
        ("It is open until", None),
        ("", None),
    ],
)
def test_an_answer_at_the_limit_is_cut_to_whole_sentences(
    tiny: TinyHost, with_host: Any, answer: str, kept: str | None
) -> None:
    keys = new_keys()
    tiny.answer = answer
    found = generated(with_host, tiny, unanswered(keys), keys)
    if kept is None:
        assert isinstance(found, Outcome)
        assert found.status == "failed"
    else:
        assert found.text == kept


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_of_the_request_itself_is_its_own_business(
    tiny: TinyHost, with_host: Any, name: str
) -> None:
    keys = new_keys()
    tiny.answer = "It is"
    params = {name: 4}
    row = prompt(keys, "acme", "Is it open?", model=MODEL, response=None, params=params)
    heads = [head(keys, "acme", "", model=MODEL)]
    item = items(Responses(), demand([row | {"params": json.dumps(params)}], heads), CONFIG)[0]
    assert generated(with_host, tiny, item, keys).text == "It is"
    assert tiny.requests[0]["max_tokens"] == 4
    assert "max_completion_tokens" not in tiny.requests[0]


@pytest.mark.parametrize(
    ("columns", "status", "error"),
    [
        ({"params": None}, "skipped", "the plan lacks a part of its request"),
        ({"text": "Is it closed?"}, "skipped", "the plan lacks a part of its request"),
        ({"head_digest": "unknown"}, "skipped", "the plan lacks a part of its request"),
        ({"params": "{"}, "failed", "the parameters of this request are no JSON object"),
        ({"params": "[]"}, "failed", "the parameters of this request are no JSON object"),
    ],
)
def test_a_request_that_is_not_whole_gets_no_answer(
    tiny: TinyHost, with_host: Any, columns: dict[str, Any], status: str, error: str
) -> None:
    keys = new_keys()
    found = generated(with_host, tiny, unanswered(keys, **columns), keys)
    assert (found.status, found.error) == (status, error)
    assert tiny.requests == []


def test_a_host_that_lacks_the_model_or_refuses(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    found = generated(with_host, tiny, unanswered(keys, model="another"), keys)
    assert (found.status, found.error) == ("skipped", "no host here serves its model")
    tiny.status["/v1/chat/completions"] = 400
    found = generated(with_host, tiny, unanswered(keys), keys)
    assert (found.status, found.error) == ("failed", "HTTP 400: the host refuses the request")
    tiny.status["/v1/chat/completions"] = 503
    with pytest.raises(HostUnavailable):
        generated(with_host, tiny, unanswered(keys), keys)


@pytest.mark.parametrize("answer", ["abc \ud800 def.", [{"text": "abc."}], {"text": "abc."}])
def test_an_answer_that_is_no_text_fails_its_item_alone(
    tiny: TinyHost, with_host: Any, answer: Any
) -> None:
    keys = new_keys()
    tiny.answer, tiny.finish = answer, "stop"
    found = generated(with_host, tiny, unanswered(keys), keys)
    why = "HTTP 200: its answer is not of the OpenAI shape"
    assert (found.status, found.error) == ("failed", why)


def test_another_host_answers_where_one_is_down(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    dead = ModelHost("dead", "http://127.0.0.1:1")
    here, elsewhere = unanswered(keys), unanswered(keys, model="another")

    async def work(host: ModelHost) -> None:
        ctx = context(keys, DictVectors(), CONFIG, hosts=(dead, host))
        assert isinstance((await generate([here], ctx))[here.item_id], ChatResult)
        # The one that is down may serve it: that is no reason to skip it for good.
        with pytest.raises(HostUnavailable, match="'dead' is not available: no connection"):
            await generate([here, elsewhere], ctx)
        await dead.close()

    with_host(tiny.url, work)


@pytest.mark.stack
def test_a_generated_answer_is_stored_and_found(
    tiny: TinyHost, with_host: Any, redis_url: str
) -> None:
    keys = new_keys()
    item = unanswered(keys)
    vectors = DictVectors(held={item.text_digest or "": axis(0)})
    asked = lookup(
        keys, "acme", "Is it open?", model=MODEL, system_prompt=SYSTEM, tools=TOOLS, params=PARAMS
    )

    async def work(host: ModelHost) -> Any:
        store = RedisStore("cache", redis_url)
        ctx = context(keys, vectors, CONFIG, hosts=(host,))
        outcome = (await Responses().warm([item], store, ctx))[0]
        found = (await Responses().find([asked], store, ctx))[0]
        await store.close()
        return outcome, found

    outcome, found = with_host(tiny.url, work)
    assert (outcome.status, outcome.tokens) == ("warmed", 12)  # 5 words of tools, 7 of text
    assert (found.match, found.value) == ("exact", "Yes.")


@pytest.mark.host
def test_a_real_host_generates(stack_host: StackState, with_host: Any) -> None:
    keys = new_keys()
    service = stack_host.hosts[0]
    row = prompt(
        keys, "acme", "Name a colour.", response=None, model=service.model, system_prompt=SYSTEM
    )
    rows = demand([row], [head(keys, "acme", SYSTEM, model=service.model)])
    item = items(Responses(), rows, CONFIG)[0]

    async def work(host: ModelHost) -> Any:
        ctx = context(keys, DictVectors(), CONFIG, hosts=(host,))
        return [(await generate([item], ctx))[item.item_id] for _ in range(2)]

    first, second = with_host(service.url, work)
    if isinstance(first, Outcome):  # no whole sentence in 12 tokens
        assert (first.status, first.error) == (second.status, second.error)
    else:
        assert first.text == second.text != ""
