"""What a host can't have, and what its budget, salts and adapters mean for heads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.layers.building import (
    new_keys,
)
from tests.layers.heads_asked import LAYER, SYSTEM, WHOLE, asked, bare, planned
from tests.targets.tiny_host import BLOCK, MODEL, TinyHost
from warmup_lib.layers.base import Arranged, item_id
from warmup_lib.tables import MICRO
from warmup_lib.targets.host import ModelHost


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


@pytest.mark.parametrize(("blocks", "left"), [(43, 22), (10, 0), (None, None)])
def test_heads_that_begin_alike_leave_the_rest_of_the_cache(
    tiny: TinyHost, with_host: Any, blocks: int | None, left: int | None
) -> None:
    keys = new_keys()
    stem, leaf = [planned(keys, system=f"{SYSTEM}{end}")[0] for end in ("", " and more one")]
    tiny.kv_blocks = blocks

    async def work(host: ModelHost) -> int | None:
        return await LAYER.room([stem, leaf], host, bare(keys))

    assert with_host(tiny.url, work) == (None if left is None else left * BLOCK)
