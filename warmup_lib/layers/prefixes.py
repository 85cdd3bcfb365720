"""Layer `prefixes`: the KV cache of shared heads (system prompt and tools) on a model host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.layers.base import (
    Arranged,
    Context,
    Layer,
    Lookup,
    Match,
    Outcome,
    PlanItem,
    Proof,
    item_id,
)
from warmup_lib.layers.blocks import Chain, distinct, fit, in_order
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.heads import HeadHost
from warmup_lib.layers.natural import KEPT_WARM, kept_warm
from warmup_lib.layers.rows import plan_rows, refused_rows, utf8_bytes
from warmup_lib.layers.serving import UNSERVED, planned_adapters, unserved
from warmup_lib.targets.base import Target
from warmup_lib.targets.chat import PROBE_TEXT, Chat, Head, RequestRefused, own
from warmup_lib.targets.together import together

BEYOND = "beyond the host's KV budget"
"""Why a head is skipped that the host has no room for, with the blocks it needs after it."""


class Prefixes(Layer):
    """One entry a tenant, model, adapter and head. The host evicts by its own policy."""

    name = "prefixes"
    target_kind: Literal["redis", "host"] = "host"
    match: Literal["exact", "semantic"] = "exact"
    needs = ("weights", "adapters")

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return one row a head. `bytes` is 0: a host accounts in tokens."""
        heads = demand.heads.filter(pc.equal(_reasons(demand, config), ""))
        columns = {
            "key_digest": heads["head_digest"],
            "bytes": 0,
            "ttl_s": int(config.layers.prefixes.ttl.total_seconds()),
        }
        return plan_rows(self.name, heads, columns)

    def refused(self, demand: Demand, config: Config) -> pa.Table:
        """Return the heads that may not be warmed, each with the reason."""
        why = _reasons(demand, config)
        kept = pc.not_equal(why, "")
        return refused_rows(self.name, demand.heads.filter(kept), "head_digest", why.filter(kept))

    def blocked(self, item: PlanItem, missing: Sequence[PlanItem]) -> str | None:
        """Say that the item's model or adapter is among the missing ones; None: it is not."""
        if any(one.layer == "weights" and one.model == item.model for one in missing):
            return "its model is not ready"
        if any(one.layer == "adapters" and one.adapter == item.adapter for one in missing):
            return "its adapter is not resident"
        return None

    async def arrange(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> Arranged:
        """Return the heads that the host's KV budget holds, shared stems first.

        The host renders every head. Heads that it can't have or won't render come last, so that
        warming says why.

        Raises:
            HostUnavailable: The host does not answer.
        """
        run = await HeadHost.of(target, context)
        chains = await together(_chain(item, run) for item in items)
        known = {chain.item_id: chain for chain in chains if chain is not None}
        share = context.config.layers.prefixes.kv_share
        tokens = run.can.kv_tokens
        budget = None if tokens is None else int(tokens * share) // run.can.block_size
        fitted = fit(list(known.values()), budget)
        by_id = {item.item_id: item for item in items}
        ordered = [by_id[chain.item_id] for chain in in_order(fitted.chosen)]
        skipped = [
            Outcome(
                ident,
                "skipped",
                error=f"{BEYOND}: needs {needs} blocks, {fitted.left} left",
            )
            for ident, needs in fitted.beyond.items()
        ]
        unknown = [item for item in items if item.item_id not in known]
        return Arranged([*ordered, *unknown], skipped, _notes(run, budget, len(known)))

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Grow each head in steps of prompts of its token ids; one after another on one stem.

        An item that this host can't have is `skipped`; one that it had already is `already`. Where
        the host takes no token ids, the head is sent whole, with a neutral question.
        """
        run = await HeadHost.of(target, context)
        return await together(_warm(item, run) for item in items)

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Send each head with another question and see how much of it came from the cache.

        The probe itself warms, so that only the first one after warming proves anything.
        """
        run = await HeadHost.of(target, context)
        return await together(_prove(item, run) for item in items)

    async def room(self, items: Sequence[PlanItem], target: Target, context: Context) -> int | None:
        """Return the tokens of the host's KV cache that these heads leave; None: not known."""
        run = await HeadHost.of(target, context)
        if run.can.kv_tokens is None or not run.renders:
            return None
        chains = await together(_chain(item, run) for item in items)
        held = distinct([chain for chain in chains if chain is not None])
        return max(0, run.can.kv_tokens - held * run.can.block_size)

    async def find(
        self, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Send each request's head and prompt, and measure first token and cached tokens.

        A hit says that the whole head was cached, whoever had put it there: whether a plan did,
        the match's `item_id` tells. In a control run each request is cold by a salt of its own,
        and any cached token is a hit: there should be none.
        """
        run = await HeadHost.of(target, context)
        # Heads are rendered before the clock of any request runs.
        heads = list(dict.fromkeys(run.head(lookup) for lookup in lookups))
        able = dict(zip(heads, await together(_able(head, run) for head in heads), strict=True))
        return await together(_find(one, run, able[run.head(one)]) for one in lookups)


async def _chain(item: PlanItem, run: HeadHost) -> Chain | None:
    """Return an item's head as blocks; None: this host can't have it, or renders no ids."""
    if run.problem(run.head(item)) or not run.renders:
        return None
    try:
        blocks = await run.blocks(item)
    except (RequestRefused, InputDataError):
        return None
    return Chain(item.item_id, item.rank, item.expected_micro, blocks) if blocks else None


def _notes(run: HeadHost, budget: int | None, heads: int) -> tuple[str, ...]:
    if budget is None and heads:
        return (
            f"target '{run.host.name}' does not say how many tokens its KV cache holds: its "
            f"{heads} heads are warmed without a budget",
        )
    return ()


async def _warm(item: PlanItem, run: HeadHost) -> Outcome:
    try:
        return await run.warm(item)
    except (RequestRefused, InputDataError) as error:
        return Outcome(item.item_id, "failed", error=str(error))


async def _prove(item: PlanItem, run: HeadHost) -> Proof:
    head = run.head(item)
    if problem := run.problem(head):
        return Proof(item.item_id, False, problem)
    if not run.can.cached_tokens:
        return Proof(item.item_id, False, "the host reports no cached tokens")
    headers = own(run.context.plan_id, item.item_id)
    chat = Chat(head, PROBE_TEXT, salt=run.salt(item), headers=headers)
    try:
        await run.planned(head)
        answer = await run.host.chat(chat)
        whole = await run.whole_of(chat, answer)
    except (RequestRefused, InputDataError) as error:
        return Proof(item.item_id, False, str(error))
    cached = answer.cached_tokens or 0
    return Proof(item.item_id, cached >= whole > 0, f"cached={min(cached, whole)}/{whole}")


async def _find(lookup: Lookup, run: HeadHost, able: bool) -> Match:
    if not able:
        return Match(lookup.request_id, False)
    chat = Chat(
        run.head(lookup),
        lookup.prompt,
        salt=run.salt(lookup, lookup.request_id),
        low_priority=False,
        stream=True,
        headers=own(run.context.plan_id),
    )
    try:
        answer = await run.host.chat(chat)
        whole = await run.whole_of(chat, answer)
    except RequestRefused:
        return Match(lookup.request_id, False)
    cached = answer.cached_tokens or 0
    hit = cached >= whole > 0 if run.context.control is None else cached > 0
    place = (lookup.model, lookup.model_revision, lookup.adapter)
    return Match(
        lookup.request_id,
        hit,
        "prefix" if hit else None,
        item_id=item_id(Prefixes.name, lookup.tenant, lookup.head_digest, *place) if hit else None,
        prompt_tokens=answer.prompt_tokens,
        cached_tokens=answer.cached_tokens,
        ttft_ms=answer.ttft_ms,
    )


async def _able(head: Head, run: HeadHost) -> bool:
    """Say whether this host can be asked about a head, and have it rendered where it can be."""
    if run.problem(head):
        return False
    try:
        await run.planned(head)
    except (RequestRefused, InputDataError):
        return False
    return True


def _reasons(demand: Demand, config: Config) -> Any:
    """Return why each head may not be warmed; empty: it may."""
    heads, loaded = demand.heads, planned_adapters(demand, config)
    eighths = pc.add(_eighths(heads["system_prompt"]), _eighths(heads["tools"]))
    short = pc.less(eighths, 8 * config.layers.prefixes.min_tokens)
    kept = kept_warm(heads["heat_micro"], config.layers.prefixes.ttl, config)
    rest = pc.if_else(kept, pa.scalar(KEPT_WARM), pa.scalar(""))
    rest = pc.if_else(short, pa.scalar("short_head"), rest)
    away = pc.if_else(unserved(heads["adapter"], config, loaded), pa.scalar(UNSERVED), rest)
    return pc.coalesce(heads["unwarmable"], away)


def _eighths(texts: Any) -> Any:
    """Return how many tokens each text has, in eighths, rather too few than too many.

    Four characters a token in ASCII, and one Chinese character: real English prompts have 4.8
    bytes a token (3.9 to 6.5), JSON tools about 4, and Chinese pages 0.7 to 1.5 tokens a
    character by the tokenizer. It leaves out heads that fill no cache block; hosts count the rest.
    """
    chars = pc.fill_null(pc.cast(pc.utf8_length(texts), pa.int64()), 0)
    beyond_ascii = pc.subtract(utf8_bytes(texts), chars)  # two a Chinese character
    return pc.add(pc.multiply(chars, 2), pc.multiply(beyond_ascii, 3))
