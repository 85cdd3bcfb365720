"""Heads on a real model host: shared, proven, and kept from other tenants."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from samples import texts
from tests.layers.building import (
    new_keys,
)
from tests.layers.heads_asked import LAYER, TOOLS, asked, bare, planned
from warmup_lib.layers.base import PlanItem
from warmup_lib.stack.state import StackState
from warmup_lib.targets.chat import Head
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.tokens import head_tokens


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
