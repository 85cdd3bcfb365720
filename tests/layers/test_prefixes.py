"""Heads are warmed, proven by the first probe after, and found by the requests that share them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from samples import texts
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
from tests.targets.tiny_host import BLOCK, MODEL, TinyHost, ids
from warmup_lib.config import Config
from warmup_lib.errors import HostUnavailable
from warmup_lib.keys import Keys
from warmup_lib.layers.base import Arranged, Context, Lookup, PlanItem, item_id
from warmup_lib.layers.prefixes import Prefixes
from warmup_lib.stack.state import StackState
from warmup_lib.tables import LEFT_OUT, MICRO, PLAN
from warmup_lib.targets.chat import PROBE_TEXT, Head
from warmup_lib.targets.host import LOWEST_PRIORITY, ModelHost
from warmup_lib.targets.tokens import head_tokens

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


@pytest.mark.parametrize(
    ("change", "status", "error", "evidence"),
    [
        ("model", "skipped", "the host does not serve its model", None),
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
            tiny.status |= {"/v1/completions": 500, "/v1/chat/completions": 500}
        arranged = await LAYER.arrange([item], host, bare(keys))
        outcome = (await LAYER.warm([item], host, bare(keys)))[0]
        return arranged, outcome, (await LAYER.prove([item], host, bare(keys)))[0]

    arranged, outcome, proof = with_host(tiny.url, work)
    assert (list(arranged.items), list(arranged.skipped)) == ([item], [])  # warming says why
    assert (outcome.status, outcome.error) == (status, error)
    assert (proof.resident, proof.evidence) == (False, evidence or error)


@pytest.mark.parametrize("ids_known", [True, False])
def test_a_host_of_fewer_abilities_gets_heads_whole(
    tiny: TinyHost, with_host: Any, ids_known: bool
) -> None:
    keys = new_keys()
    tiny.knows.discard("ids")
    if not ids_known:
        tiny.status["/tokenize"] = 404
    item, short = planned(keys)[0], planned(keys, system="x" * 400)[0]

    async def work(host: ModelHost) -> Any:
        arranged = await LAYER.arrange([item, short], host, bare(keys))
        warm = await LAYER.warm([item, short], host, bare(keys))
        again = await LAYER.warm([item], host, bare(keys))
        proof = await LAYER.prove([item], host, bare(keys))
        one, two = (
            asked(keys, "acme", "What now?"),
            asked(keys, "acme", "x", system=SYSTEM + 8 * " y"),
        )
        found = await LAYER.find([one, two], host, bare(keys))
        return arranged, warm, again[0], proof[0], found

    arranged, warm, again, proof, found = with_host(tiny.url, work)
    whole = WHOLE if ids_known else 81 // BLOCK * BLOCK  # counted from below: without "user"
    assert {i.item_id for i in arranged.items} == {item.item_id, short.item_id}
    assert [(o.status, o.tokens) for o in warm] == [("warmed", whole), ("skipped", 0)]
    assert warm[1].error == "shorter than one cache block"
    assert (again.status, again.tokens) == ("already", 0)
    assert (proof.resident, proof.evidence) == (True, f"cached={whole}/{whole}")
    assert [m.hit for m in found] == [True, False]


def test_the_hosts_budget_holds_the_heads_with_most_hits_a_block(
    tiny: TinyHost, with_host: Any
) -> None:
    keys = new_keys()
    hits = {"": 1, " and more one": 1, " and more two": 2}
    texts = {f"{SYSTEM}{end}": n for end, n in hits.items()}
    texts[" ".join(f"other{n}" for n in range(120))] = 40
    many = [
        replace(planned(keys, system=text)[0], rank=rank, expected_micro=n * MICRO)
        for rank, (text, n) in enumerate(texts.items(), 1)
    ]
    tiny.kv_blocks = 43  # the half of which holds 21 blocks: the stem of 20 and one leaf

    async def work(host: ModelHost) -> Arranged:
        return await LAYER.arrange(many, host, bare(keys))

    arranged = with_host(tiny.url, work)
    assert [i.item_id for i in arranged.items] == [many[n].item_id for n in (0, 2)]
    assert [(o.item_id, o.status, o.error) for o in arranged.skipped] == [
        (item.item_id, "skipped", f"beyond the host's KV budget: needs {needs} blocks, 0 left")
        for item, needs in ((many[1], 1), (many[3], 30))
    ]
    assert arranged.notes == ()


def test_without_a_known_size_there_is_no_budget(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    tiny.kv_blocks = None
    item = planned(keys)
    arranged = with_host(tiny.url, lambda host: LAYER.arrange(item, host, bare(keys)))
    assert (arranged.items, arranged.skipped) == (item, [])
    assert arranged.notes == (
        "target 'gpu' does not say how many tokens its KV cache holds: its 1 heads are warmed "
        "without a budget",
    )


@pytest.mark.parametrize(("mode", "kept"), [("none", 2), ("derived", 1)])
def test_tenants_share_blocks_only_where_they_share_a_salt(
    tiny: TinyHost, with_host: Any, mode: str, kept: int
) -> None:
    keys = new_keys()
    many = [planned(keys, tenant=tenant)[0] for tenant in ("acme", "beta")]
    many = [replace(item, rank=rank) for rank, item in enumerate(many, 1)]
    tiny.kv_blocks = 2 * WHOLE // BLOCK

    async def work(host: ModelHost) -> Arranged:
        return await LAYER.arrange(many, host, bare(keys))

    arranged = with_host(tiny.url, work, cache_salt=mode)
    assert list(arranged.items) == many[:kept]
    assert [o.item_id for o in arranged.skipped] == [item.item_id for item in many[kept:]]


def test_a_head_waits_for_its_model_and_its_adapter() -> None:
    keys = new_keys()
    [item] = planned(keys)
    tuned = replace(item, adapter="lora")
    weights = replace(item, layer="weights", adapter=None)
    lora = replace(item, layer="adapters", adapter="lora")
    assert LAYER.needs == ("weights", "adapters")
    assert LAYER.blocked(tuned, [weights, lora]) == "its model is not ready"
    assert LAYER.blocked(tuned, [lora]) == "its adapter is not resident"
    assert LAYER.blocked(item, [lora]) is None
    assert LAYER.blocked(tuned, [replace(weights, model="another")]) is None
    assert LAYER.blocked(tuned, [replace(lora, adapter="another")]) is None


def test_an_adapter_goes_by_the_name_of_its_present_weights(tiny: TinyHost, with_host: Any) -> None:
    keys = new_keys()
    ctx = bare(keys, adapters={"lora": "lora-0123456789ab"})
    tiny.models = [MODEL, "lora-0123456789ab"]
    one = asked(keys, "acme", "What now?", adapter="lora")
    ident = item_id(LAYER.name, "acme", one.head_digest, MODEL, None, "lora")
    item = replace(planned(keys)[0], adapter="lora", key_digest=one.head_digest, item_id=ident)

    async def work(host: ModelHost) -> Any:
        await host.capabilities()
        tiny.prefills.clear()
        warm = await LAYER.warm([item], host, ctx)
        return (
            warm[0],
            (await LAYER.prove([item], host, ctx))[0],
            await LAYER.find([one], host, ctx),
        )

    warm, proof, [found] = with_host(tiny.url, work, cache_salt="derived")
    assert (warm.status, proof.resident) == ("warmed", True)
    assert found.item_id == item.item_id
    ours = [*tiny.prefills, *tiny.requests[-2:]]
    assert {b["model"] for b in ours} == {"lora-0123456789ab"}
    assert {b["cache_salt"] for b in ours} == {keys.salt("acme", "lora-0123456789ab")}


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
        sizes = [len(await head_tokens(host, _as_head(i))) for i in item]
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


@pytest.mark.host
def test_real_heads_share_blocks_and_are_kept_from_other_tenants(
    vllm: tuple[str, str], with_host: Any
) -> None:
    keys = new_keys()
    url, model = vllm
    many = []
    for name in ("acme-bank", "lanting-shop", "nordwind-travel"):
        tenant = texts.tenant(name)
        for place in zip(list(tenant.areas)[:2], list(tenant.locales)[:2], strict=True):
            system = tenant.head(*place, arm=None, day=1, clock="")
            many += planned(keys, tenant=name, system=system, model=model)
    many = [replace(item, rank=rank) for rank, item in enumerate(many, 1)]

    async def work(host: ModelHost) -> Any:
        arranged = await LAYER.arrange(many, host, bare(keys))
        warm = [(await LAYER.warm([item], host, bare(keys)))[0] for item in arranged.items]
        proofs = await LAYER.prove(many, host, bare(keys))
        rendered = [await head_tokens(host, _as_head(item)) for item in many]
        stranger = asked(keys, "other", "What now?", many[0].system_prompt or "", model=model)
        cold = await LAYER.find([stranger], host, bare(keys))
        again = await LAYER.warm(many[:1], host, bare(keys))
        return arranged, warm, proofs, rendered, cold, again

    arranged, warm, proofs, rendered, cold, again = with_host(url, work, cache_salt="derived")
    counts = [len(tokens) for tokens in rendered]
    assert min(counts) >= 1_200
    assert max(counts) >= 2_000
    assert arranged.skipped == []
    whole = [count // 32 * 32 for count in counts]
    shares = [
        int(p.evidence.split("=")[1].split("/")[0]) / n for p, n in zip(proofs, whole, strict=True)
    ]
    assert min(shares) >= 0.95
    assert all(proof.resident for proof in proofs)
    assert {o.status for o in warm} == {"warmed"}
    # A tenant's second head begins like its first one: what both hold was computed once.
    kept = {
        (item.tenant, *tokens[:end])
        for item, tokens in zip(many, rendered, strict=True)
        for end in range(32, len(tokens) + 1, 32)
    }
    assert sum(o.tokens for o in warm) == 32 * len(kept) < 0.6 * sum(whole)
    assert all(o.bytes == o.tokens * 23_040 for o in warm)
    assert [(m.hit, m.cached_tokens) for m in cold] == [(False, 0)]
    assert (again[0].status, again[0].tokens) == ("already", 0)


def _as_head(item: PlanItem) -> Head:
    return Head(item.model, item.system_prompt, item.tools, item.adapter)
