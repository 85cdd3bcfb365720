"""Plans, warms and sends: two ways to charge a head, on a vLLM of the bench's own."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench.kv_length.log import LAYER, Ask
from warmup_lib.config import Config, warmup_home
from warmup_lib.keys import Keys
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.layers.blocks import Blocks, Chain, cut, distinct, fit
from warmup_lib.layers.heads import HeadHost
from warmup_lib.stack import process, servers
from warmup_lib.stack.artifacts import host_files, workshop
from warmup_lib.targets.chat import Chat
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.tokens import head_tokens

STATIC = 2_048
BLOCK = 32
BUDGET = 256
"""Blocks that heads may fill: 8,192 tokens, four heads of 2,048."""

BUDGETS = (128, 192, 256, 448, 640, 1_024)
ROOM = 96
"""Blocks that a paging host gets besides, for the request that it serves."""

ARMS = ("static", "length", "blocks")
"""A head is charged 2,048 tokens; its own whole blocks; the new ones of them, as `arrange` does."""

PAGED = ("static", "blocks")


@dataclass(frozen=True)
class Sent:
    """One request as it was answered; `cached` of `whole` tokens in the head's whole blocks."""

    arm: str
    planned: bool
    cached: int
    whole: int
    ttft_ms: float

    @property
    def hit(self) -> bool:
        """Whether all of the head came from the cache."""
        return self.cached >= self.whole > 0


class NoVectors:
    """Heads need none."""

    encoder = ""
    dimension = 0

    def get(self, _: Sequence[str]) -> dict[str, Any]:
        """Return nothing."""
        return {}


async def plan(arm: str, items: Sequence[PlanItem], budget: int, run: HeadHost) -> list[PlanItem]:
    """Return what an arm warms inside so many blocks, in the order of warming."""
    if arm == "static":
        items = items[: budget * BLOCK // STATIC]
    if arm == "length":
        chains = [Chain(i.item_id, i.rank, i.expected_micro, await _alone(i, run)) for i in items]
        held = {chain.item_id for chain in fit(chains, budget).chosen}
        items = [item for item in items if item.item_id in held]
    size = run.can.kv_tokens or 0
    share = min(1.0, (budget * BLOCK + 1) / size) if arm == "blocks" else 1.0
    config = Config.model_validate({"layers": {"prefixes": {"kv_share": share}}})
    context = replace(run.context, config=config)
    return list((await LAYER.arrange(items, run.host, context)).items)


async def _alone(item: PlanItem, run: HeadHost) -> Blocks:
    """Return the blocks of a head as if it shared none."""
    return cut(await head_tokens(run.host, run.head(item)), BLOCK, item.item_id)


# -- a host of its own ---------------------------------------------------------------------------


def serve(work: Callable[[str], Awaitable[Any]], *, gib: int, blocks: int | None = None) -> Any:
    """Run work with the address of a vLLM that has so much KV cache, and stop it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with workshop(warmup_home(), home / "setup.log", print) as shop:
            launch = servers.vllm_launch(host_files(shop), 0, 1, home)
        argv = [*launch.argv]
        if blocks is not None:
            argv += ["--num-gpu-blocks-override", str(blocks)]
        env = {**launch.env, "VLLM_CPU_KVCACHE_SPACE": str(gib), "VLLM_SERVER_DEV_MODE": "1"}
        pid = process.start(home, replace(launch, argv=argv, env=env))
        try:
            until = time.monotonic() + 400
            while servers.vllm_version(launch.url) is None:
                if time.monotonic() > until or not process.leaders(home, launch.name):
                    raise RuntimeError(process.last_words(process.log_file(home, launch.name)))
                time.sleep(1)
            return asyncio.run(work(launch.url))
        finally:
            process.stop(home, launch.name, pid)


async def opened(url: str, items: Sequence[PlanItem]) -> ModelHost:
    """Return the host; adapters go by the base model's name, kept apart by their salts."""
    names = {item.adapter: servers.MODEL_NAME for item in items if item.adapter}
    host = ModelHost("vllm", url, models=names, cache_salt="derived", timeout_s=120)
    can = await host.capabilities()
    if (can.block_size, can.cached_tokens, can.token_prompts) != (BLOCK, True, True):
        raise RuntimeError(f"this bench is for hosts of {BLOCK} tokens a block, not for {can}")
    return host


async def begin(host: ModelHost) -> HeadHost:
    """Return the host in a run whose salts nobody had before."""
    keys = Keys(secrets.token_bytes(32))
    context = Context("kv-length", Config(), keys, NoVectors())
    return await HeadHost.of(host, context)


async def warm(arm: str, items: Sequence[PlanItem], run: HeadHost) -> set[str]:
    """Warm an arm's plan and return its heads."""
    chosen = await plan(arm, items, BUDGET, run)
    for item in chosen:
        [outcome] = await LAYER.warm([item], run.host, run.context)
        assert outcome.status in ("warmed", "already"), outcome
    return {item.key_digest for item in chosen}


async def send(arm: str, ask: Ask, planned: bool, salt: str | None, run: HeadHost) -> Sent:
    """Send one request as live traffic is sent."""
    whole = run.whole(len(await head_tokens(run.host, ask.head)))
    chat = Chat(ask.head, ask.prompt, salt=salt, low_priority=False, stream=True)
    answer = await run.host.chat(chat)
    cached = min(answer.cached_tokens or 0, whole)
    return Sent(arm, planned, cached, whole, answer.ttft_ms or answer.total_ms)


# -- the two parts -------------------------------------------------------------------------------


async def reserved(
    url: str, items: list[PlanItem], day: list[Ask], asks: list[Ask]
) -> dict[str, Any]:
    """Replay with all plans resident; each request goes to all arms, in turn first.

    What is not planned is sent under a salt of its own: the budget holds the plan and no more.
    """
    host = await opened(url, items)
    try:
        runs = {arm: await begin(host) for arm in ARMS}
        heads = {arm: await warm(arm, items, runs[arm]) for arm in ARMS}
        sent: list[Sent] = []
        for number, ask in enumerate(asks):
            turn = number % len(ARMS)
            for arm in (*ARMS[turn:], *ARMS[:turn]):
                planned = ask.digest in heads[arm]
                tenant = ask.tenant if planned else f"{ask.tenant}~{arm}~{number}"
                salt = runs[arm].context.keys.salt(tenant, ask.head.adapter)
                sent.append(await send(arm, ask, planned, salt, runs[arm]))
        sizes = await _sizes(items, runs["blocks"])
        by_budget = await _by_budget(items, day, runs["blocks"])
        return {
            "sent": [asdict(one) for one in sent],
            "heads": {arm: len(planned) for arm, planned in heads.items()},
            "sizes": sizes,
            "by_budget": by_budget,
        }
    finally:
        await host.close()


async def paged(url: str, items: list[PlanItem], asks: list[Ask]) -> dict[str, Any]:
    """Replay on a cache of the budget's size; each half of the requests on both arms, in turn."""
    host = await opened(url, items)
    sent: list[Sent] = []
    count: dict[str, int] = {}
    try:
        for half, order in enumerate((PAGED, PAGED[::-1])):
            part = asks[half * len(asks) // 2 : (half + 1) * len(asks) // 2]
            for arm in order:
                async with httpx.AsyncClient(base_url=url, timeout=30) as client:
                    (await client.post("/reset_prefix_cache")).raise_for_status()
                host.kv.filled.clear()
                run = await begin(host)
                heads = await warm(arm, items, run)
                count[arm] = len(heads)
                for ask in part:
                    salt = run.context.keys.salt(ask.tenant, ask.head.adapter)
                    sent.append(await send(arm, ask, ask.digest in heads, salt, run))
        can = await host.capabilities()
        return {
            "sent": [asdict(one) for one in sent],
            "heads": count,
            "kv_tokens": can.kv_tokens,
        }
    finally:
        await host.close()


async def _sizes(items: Sequence[PlanItem], run: HeadHost) -> dict[str, Any]:
    chains = [Chain(i.item_id, i.rank, i.heat_micro, await run.blocks(i)) for i in items]
    tokens = [len(await head_tokens(run.host, run.head(item))) for item in items]
    return {
        "heads": len(items),
        "tokens": {
            "min": min(tokens),
            "median": int(np.median(tokens)),
            "max": max(tokens),
            "under 256": sum(t < 256 for t in tokens),
        },
        "static_blocks": len(items) * STATIC // BLOCK,
        "blocks": sum(len(chain.blocks) for chain in chains),
        "distinct_blocks": distinct(chains),
    }


async def _by_budget(
    items: Sequence[PlanItem], asks: Sequence[Ask], run: HeadHost
) -> list[dict[str, Any]]:
    """Return for each budget how many heads each arm holds and which share of requests they are."""
    rows = []
    for budget in BUDGETS:
        row: dict[str, Any] = {"budget": budget}
        for arm in ARMS:
            chosen = {item.key_digest for item in await plan(arm, items, budget, run)}
            row[arm] = {
                "heads": len(chosen),
                "share": sum(ask.digest in chosen for ask in asks) / len(asks),
            }
        rows.append(row)
    return rows
