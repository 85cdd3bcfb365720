"""Heads are warmed, proven by the first probe after, and found by the requests that share them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.layers.building import (
    DictVectors,
    context,
    demand,
    head,
    items,
    lookup,
    new_keys,
    prompt,
)
from tests.targets.tiny_host import BLOCK, MODEL, TinyHost
from warmup_lib.config import Config
from warmup_lib.errors import HostUnavailable
from warmup_lib.keys import Keys
from warmup_lib.layers.base import Context, Lookup, PlanItem
from warmup_lib.layers.prefixes import Prefixes
from warmup_lib.stack.state import StackState
from warmup_lib.tables import LEFT_OUT, MICRO, PLAN
from warmup_lib.targets.chat import Head
from warmup_lib.targets.host import LOWEST_PRIORITY, ModelHost

LAYER = Prefixes()
SYSTEM = " ".join(f"rule{n} applies" for n in range(40))
WHOLE = (80 + 2) // BLOCK * BLOCK  # two more words: the roles of the system and user message
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"b": 1, "a": 2}}}]


def planned(keys: Keys, tenant: str = "acme", system: str = SYSTEM, **more: Any) -> list[PlanItem]:
    shape = {"model": MODEL, **more}
    return items(LAYER, demand(heads=[head(keys, tenant, system, **shape)]))


def bare(keys: Keys, **more: Any) -> Context:
    return context(keys, DictVectors(), **more)


def asked(keys: Keys, tenant: str, text: str, system: str = SYSTEM, **more: Any) -> Lookup:
    return lookup(keys, tenant, text, system_prompt=system, **{"model": MODEL, **more})


def test_candidates_are_warmable_heads_of_some_length() -> None:
    keys = new_keys()
    tools = json.dumps(TOOLS)
    rows = [
        head(keys, "acme", SYSTEM, 3, adapter="lora"),
        head(keys, "acme", "x" * 255, 2),
        head(keys, "acme", "x" * (256 - len(tools)), 2, tools=tools, parsed_tools=TOOLS),
        head(keys, "acme", f"It is 12:01. {SYSTEM}", 9, unwarmable="volatile"),
        head(keys, "acme", SYSTEM, 4, adapter="unknown"),
    ]
    config = Config.model_validate(
        {"targets": [{"kind": "host", "name": "h", "url": "http://h", "models": {"lora": "l-1"}}]}
    )
    table = LAYER.candidates(demand(heads=rows), config)
    assert table.schema == PLAN.schema
    first, second = PlanItem.rows(table)
    assert (first.system_prompt, first.adapter, first.heat_micro) == (SYSTEM, "lora", 3 * MICRO)
    assert (first.key_digest, first.ttl_s, first.bytes) == (rows[0]["head_digest"], 1800, 0)
    assert second.tools == tools
    refused = LAYER.refused(demand(heads=rows), config)
    assert refused.schema == LEFT_OUT.schema
    assert [(r["reason"], r["heat_micro"]) for r in refused.to_pylist()] == [
        ("short_head", 2 * MICRO),
        ("volatile", 9 * MICRO),
        ("adapter_not_served", 4 * MICRO),
    ]
    assert LAYER.candidates(demand(), Config()).num_rows == 0


@pytest.mark.parametrize(
    ("system", "tools", "kept"),
    [
        ("a" * 255, None, False),
        ("a" * 256, None, True),
        ("\u95ee" * 63, None, False),
        ("\u95ee" * 64, None, True),
        ("a" * 100, "b" * 156, True),
        ("", "b" * 255, False),
    ],
)
def test_a_head_of_64_tokens_is_long_enough(system: str, tools: str | None, kept: bool) -> None:
    row = head(new_keys(), "acme", system, tools=tools)
    assert bool(LAYER.candidates(demand(heads=[row]), Config()).num_rows) is kept


def test_warm_then_the_first_probe_proves(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    ctx, item = bare(keys), planned(keys)

    async def work(host: ModelHost) -> Any:
        warm = await LAYER.warm(item, host, ctx)
        proofs = await LAYER.prove(item, host, ctx)
        return warm[0], proofs[0], (await LAYER.warm(item, host, ctx))[0]

    warm, proof, again = with_host(tiny.url, work)
    assert (warm.status, warm.tokens, warm.ttl_s, warm.error) == ("warmed", 83, None, None)
    assert (proof.resident, proof.evidence) == (True, f"cached={WHOLE}/{WHOLE}")
    assert again.status == "already"
    ours = [
        (body, {k.lower(): v for k, v in headers.items()})
        for body, headers in zip(tiny.requests, tiny.headers, strict=True)
        if body["messages"][0]["content"] == SYSTEM
    ]
    assert len(ours) == 3
    for body, headers in ours:
        assert (body["max_tokens"], body["temperature"]) == (1, 0)
        assert body["priority"] == LOWEST_PRIORITY
        assert headers["x-warmup"] == "plan-test"
        assert headers["x-request-id"].startswith(f"warmup-{item[0].item_id}-")
    assert ours[0][0]["messages"][1] != ours[1][0]["messages"][1]


def test_what_was_not_warmed_is_not_resident_and_a_lost_head_is_seen(
    tiny: TinyHost, with_host: Any
) -> None:
    keys = new_keys()
    ctx = bare(keys)

    async def work(host: ModelHost) -> Any:
        cold = await LAYER.prove(planned(keys, system=SYSTEM + " once"), host, ctx)
        await LAYER.warm(planned(keys), host, ctx)
        tiny.restart()
        return cold[0], (await LAYER.prove(planned(keys), host, ctx))[0]

    cold, lost = with_host(tiny.url, work)
    assert (cold.resident, cold.evidence) == (False, f"cached=0/{WHOLE}")
    assert (lost.resident, lost.evidence) == (False, f"cached=0/{WHOLE}")


def test_derived_salts_keep_tenants_apart(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    ctx = bare(keys)

    async def work(host: ModelHost) -> list[bool]:
        await LAYER.warm(planned(keys), host, ctx)
        found = [
            await LAYER.find([asked(keys, tenant, "What now?")], host, ctx)
            for tenant in ("beta", "acme")
        ]
        return [match.hit for (match,) in found]

    assert with_host(tiny.url, work, cache_salt="derived") == [False, True]
    salts = {body.get("cache_salt") for body in tiny.requests if len(body["messages"]) == 2}
    assert salts == {keys.salt("acme"), keys.salt("beta")}


@pytest.mark.parametrize("mode", ["none", "as-logged"])
def test_without_salts_tenants_share_a_head(tiny: TinyHost, with_host: Any, mode: str) -> None:
    keys = new_keys()
    ctx = bare(keys)

    async def work(host: ModelHost) -> bool:
        await LAYER.warm(planned(keys), host, ctx)
        return (await LAYER.find([asked(keys, "beta", "What now?")], host, ctx))[0].hit

    assert with_host(tiny.url, work, cache_salt=mode) is True
    assert all("cache_salt" not in b for b in tiny.requests if len(b["messages"]) == 2)


@pytest.mark.parametrize("mode", ["none", "derived"])
def test_in_a_control_run_every_request_is_cold(tiny: TinyHost, with_host: Any, mode: str) -> None:
    keys = new_keys()
    one, two = asked(keys, "acme", "What now?"), asked(keys, "acme", "And then?")

    async def work(host: ModelHost) -> Any:
        await LAYER.warm(planned(keys), host, bare(keys))
        cold = await LAYER.find([one, two], host, bare(keys, control="fresh"))
        return cold, await LAYER.find([one, two], host, bare(keys))

    cold, warm = with_host(tiny.url, work, cache_salt=mode)
    assert [(m.hit, m.cached_tokens) for m in cold] == [(False, 0), (False, 0)]
    assert [(m.hit, m.cached_tokens) for m in warm] == [(True, WHOLE), (True, WHOLE)]
    assert {m.item_id for m in warm} == {planned(keys)[0].item_id}
    assert all(m.ttft_ms > 0 and m.prompt_tokens == 84 for m in cold + warm)


def test_the_replay_is_sent_like_live_traffic(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    one = asked(keys, "acme", "What now?", tools=TOOLS, tools_json=json.dumps(TOOLS))
    with_host(tiny.url, lambda host: LAYER.find([one], host, bare(keys)))
    body = tiny.requests[-1]
    assert body["stream"] is True
    assert "priority" not in body
    assert json.dumps(body["tools"]) == json.dumps(TOOLS)  # keys in the order of the log


@pytest.mark.parametrize(
    ("change", "status", "error", "evidence"),
    [
        ("model", "skipped", "the host does not serve its model", None),
        ("tokenize", "skipped", "the host has no /tokenize, by which heads are counted", None),
        ("tools", "failed", "the tools of this head are no JSON list", None),
        ("short", "skipped", "shorter than one cache block", "cached=0/0"),
        ("refused", "failed", "HTTP 500: error inside the host", None),
        ("uncached", "warmed", None, "the host reports no cached tokens"),
    ],
)
def test_an_item_that_this_host_cannot_have(
    tiny: TinyHost,
    with_host: Any,
    change: str,
    status: str,
    error: str | None,
    evidence: str | None,
) -> None:
    keys = new_keys()
    item = planned(keys)[0]
    if change == "model":
        tiny.models = ["another"]
    if change == "tokenize":
        tiny.status["/tokenize"] = 404
    if change == "tools":
        item = planned(keys, tools="{")[0]
    if change == "short":
        item = planned(keys, system="x" * 400)[0]
        assert len(["system", "x", "user"]) < BLOCK
    if change == "uncached":
        tiny.knows.discard("caching")

    async def work(host: ModelHost) -> Any:
        await host.capabilities()
        if change == "refused":
            tiny.status["/v1/chat/completions"] = 500
        outcome = (await LAYER.warm([item], host, bare(keys)))[0]
        return outcome, (await LAYER.prove([item], host, bare(keys)))[0]

    outcome, proof = with_host(tiny.url, work)
    assert (outcome.status, outcome.error) == (status, error)
    assert (proof.resident, proof.evidence) == (False, evidence or error)


def test_a_request_that_the_host_refuses_is_a_miss(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()

    async def work(host: ModelHost) -> Any:
        await host.capabilities()
        tiny.status["/v1/chat/completions"] = 400
        others = asked(keys, "acme", "hm", model="another")
        return await LAYER.find([asked(keys, "acme", "hm"), others], host, bare(keys))

    assert [(m.hit, m.ttft_ms) for m in with_host(tiny.url, work)] == [(False, None)] * 2


def test_a_host_that_goes_away_fails_the_call(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    many = [planned(keys, system=f"{SYSTEM} {n}")[0] for n in range(8)]

    async def work(host: ModelHost) -> None:
        await host.capabilities()
        tiny.status["/v1/chat/completions"] = 503
        await LAYER.warm(many, host, bare(keys))

    with pytest.raises(HostUnavailable, match="it answers 503"):
        with_host(tiny.url, work)


def test_a_prompts_head_is_the_one_that_was_planned() -> None:
    keys = new_keys()
    row = prompt(keys, "acme", "What now?", system_prompt=SYSTEM, model=MODEL)
    assert planned(keys)[0].key_digest == row["head_digest"]
    assert asked(keys, "acme", "What now?").head_digest == row["head_digest"]


# -- on a real vLLM ----------------------------------------------------------------------------


@pytest.fixture
def vllm(stack_host: StackState) -> tuple[str, str]:
    host = stack_host.hosts[0]
    assert host.model is not None
    return host.url, host.model


@pytest.mark.host
def test_a_real_host_tells_what_it_can_do(vllm: tuple[str, str], with_host: Any) -> None:
    can = with_host(vllm[0], lambda host: host.capabilities())
    assert (can.tokenize, can.cached_tokens, can.salt, can.priority) == (True, True, True, True)
    assert can.block_size == 32
    assert can.kv_tokens > 10_000
    first = with_host(vllm[0], lambda host: host.epoch())
    assert first == with_host(vllm[0], lambda host: host.epoch()) != "unknown"


@pytest.mark.host
def test_on_a_real_host(vllm: tuple[str, str], with_host: Any) -> None:
    keys = new_keys()
    url, model = vllm
    policies = [
        " ".join(f"Rule {n} of {shop}: parcels of kind {n} go back in {n} days." for n in range(9))
        for shop in ("the shop", "the bank")
    ]
    tools = json.dumps(TOOLS)
    item = [planned(keys, system=text, model=model)[0] for text in policies]
    item += planned(keys, system=policies[0], model=model, tools=tools, parsed_tools=TOOLS)

    async def work(host: ModelHost) -> Any:
        sizes = [await host.count_head(_as_head(i)) for i in item]
        warm = await LAYER.warm(item, host, bare(keys))
        proofs = await LAYER.prove(item, host, bare(keys))
        one = asked(keys, "acme", "What comes back?", system=policies[1], model=model)
        other = asked(keys, "beta", "What comes back?", system=policies[1], model=model)
        found = [
            (await LAYER.find([o], host, c))[0]
            for o, c in ((other, bare(keys)), (one, bare(keys)), (one, bare(keys, control="x")))
        ]
        return sizes, warm, proofs, found

    sizes, warm, proofs, found = with_host(url, work, cache_salt="derived")
    whole = [size // 32 * 32 for size in sizes]
    assert min(whole) >= 96
    assert {o.error for o in warm} == {None}
    assert warm[0].status == "warmed"
    assert [(p.resident, p.evidence) for p in proofs] == [
        (True, f"cached={tokens}/{tokens}") for tokens in whole
    ]
    assert [(m.hit, m.cached_tokens) for m in found] == [(False, 0), (True, whole[1]), (False, 0)]
    assert found[1].item_id == item[1].item_id


def _as_head(item: PlanItem) -> Head:
    return Head(item.model, item.system_prompt, item.tools, item.adapter)
