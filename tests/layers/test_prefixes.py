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
    new_keys,
    prompt,
)
from tests.layers.heads_asked import LAYER, SYSTEM, TOOLS, WHOLE, asked, bare, planned
from tests.targets.tiny_host import BLOCK, MODEL, TinyHost, ids
from warmup_lib.config import Config
from warmup_lib.errors import HostUnavailable
from warmup_lib.layers.base import PlanItem
from warmup_lib.tables import LEFT_OUT, MICRO, PLAN
from warmup_lib.targets.chat import PROBE_TEXT, Head
from warmup_lib.targets.host import LOWEST_PRIORITY, ModelHost


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
    assert (warm.status, warm.tokens, warm.ttl_s, warm.error) == ("warmed", WHOLE, None, None)
    assert (proof.resident, proof.evidence) == (True, f"cached={WHOLE}/{WHOLE}")
    assert (again.status, again.tokens) == ("already", 0)
    prompts = [b["messages"][1] for b in tiny.requests if b["messages"][0]["content"] == SYSTEM]
    assert prompts == [{"role": "user", "content": PROBE_TEXT}]
    headers = {k.lower(): v for k, v in tiny.headers[-1].items()}
    assert headers["x-warmup"] == "plan-test"
    assert headers["x-request-id"].startswith(f"warmup-{item[0].item_id}-")


@pytest.mark.parametrize(
    ("step", "ends"),
    [(32, [32, 64, WHOLE]), (WHOLE, [WHOLE]), (1000, [WHOLE]), (43, [40, 80]), (1, None)],
)
def test_a_long_head_is_grown_in_steps_of_whole_blocks(
    tiny: TinyHost, with_host: Any, step: int, ends: list[int] | None
) -> None:
    keys = new_keys()
    config = Config.model_validate({"layers": {"prefixes": {"step_tokens": step}}})
    ctx = context(keys, DictVectors(), config)

    async def work(host: ModelHost) -> Any:
        await host.capabilities()
        tiny.prefills.clear()
        return (await LAYER.warm(planned(keys), host, ctx))[0]

    assert with_host(tiny.url, work).tokens == WHOLE
    sent = [len(body["prompt"]) for body in tiny.prefills]
    assert sent == [end + 1 for end in ends or range(BLOCK, WHOLE + 1, BLOCK)]
    assert all(body["priority"] == LOWEST_PRIORITY for body in tiny.prefills)


def test_heads_that_begin_alike_fill_their_stem_once(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    ends = [f"{SYSTEM} and more {n} rules for all" for n in range(5)]
    many = [planned(keys, system=system)[0] for system in (SYSTEM, *ends)]
    config = Config.model_validate({"layers": {"prefixes": {"step_tokens": 16}}})
    ctx = context(keys, DictVectors(), config)

    async def work(host: ModelHost) -> Any:
        arranged = await LAYER.arrange(many[::-1], host, ctx)
        assert arranged.items[0] == many[0]
        tiny.prefills.clear()
        return await LAYER.warm(arranged.items, host, ctx)

    outcomes = with_host(tiny.url, work)
    length = len(ids({"messages": Head(MODEL, ends[0]).messages("")})) // BLOCK * BLOCK
    branch = 83 // BLOCK * BLOCK  # its role, 80 words, "and more"
    assert sum(o.tokens for o in outcomes) == branch + 5 * (length - branch)
    assert len(tiny.prefills) == WHOLE // 16 + 5


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


@pytest.mark.parametrize("cached", [0, BLOCK])
def test_in_a_control_run_any_cached_token_is_a_hit(
    tiny: TinyHost, with_host: Any, cached: int
) -> None:
    keys = new_keys()
    tiny.knows.discard("salt")
    if cached:  # another head begins with the same block
        tiny.chat({"model": MODEL, "messages": Head(MODEL, SYSTEM[:40]).messages("x")})
    one = asked(keys, "acme", "What now?")
    [match] = with_host(tiny.url, lambda h: LAYER.find([one], h, bare(keys, control="fresh")))
    assert (match.hit, match.cached_tokens) == (cached > 0, cached)


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
        tiny.status["/v1/completions"] = 503
        await LAYER.warm(many, host, bare(keys))

    with pytest.raises(HostUnavailable, match="it answers 503"):
        with_host(tiny.url, work)


def test_a_prompts_head_is_the_one_that_was_planned() -> None:
    keys = new_keys()
    row = prompt(keys, "acme", "What now?", system_prompt=SYSTEM, model=MODEL)
    assert planned(keys)[0].key_digest == row["head_digest"]
    assert asked(keys, "acme", "What now?").head_digest == row["head_digest"]
