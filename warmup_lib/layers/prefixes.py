"""Layer `prefixes`: the KV cache of shared heads (system prompt and tools) on a model host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.layers.base import (
    Context,
    Demand,
    Layer,
    Lookup,
    Match,
    Outcome,
    PlanItem,
    Proof,
    item_id,
)
from warmup_lib.layers.rows import plan_rows, refused_rows, utf8_bytes
from warmup_lib.layers.salts import salt_for
from warmup_lib.layers.serving import UNSERVED, unserved
from warmup_lib.targets.base import Target
from warmup_lib.targets.capabilities import Capabilities
from warmup_lib.targets.chat import PROBE_TEXT, WARM_TEXT, Chat, Head, RequestRefused, own
from warmup_lib.targets.host import ModelHost, as_host
from warmup_lib.targets.together import together


class Prefixes(Layer):
    """One entry a tenant, model, adapter and head. The host evicts by its own policy."""

    name = "prefixes"
    target_kind: Literal["redis", "host"] = "host"
    match: Literal["exact", "semantic"] = "exact"
    needs = ("weights", "adapters")

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return one row a head. `bytes` is 0: a host accounts in tokens."""
        heads = demand.heads.filter(pc.equal(_reasons(demand.heads, config), ""))
        columns = {
            "key_digest": heads["head_digest"],
            "bytes": 0,
            "ttl_s": int(config.layers.prefixes.ttl.total_seconds()),
        }
        return plan_rows(self.name, heads, columns)

    def refused(self, demand: Demand, config: Config) -> pa.Table:
        """Return the heads that may not be warmed, each with the reason."""
        why = _reasons(demand.heads, config)
        kept = pc.not_equal(why, "")
        return refused_rows(self.name, demand.heads.filter(kept), "head_digest", why.filter(kept))

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Send each head once with a neutral question and take one token of the answer.

        An item whose model the host does not serve is `skipped`: this target can't have it. One
        that the host had already is `already`.
        """
        run = await _begin(target, context)
        return await together(_warm(item, run) for item in items)

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Send each head with another question and see how much of it came from the cache.

        The probe itself warms, so that only the first one after warming proves anything.
        """
        run = await _begin(target, context)
        return await together(_prove(item, run) for item in items)

    async def find(
        self, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Send each request's head and prompt, and measure first token and cached tokens.

        A hit says that the whole head was cached, whoever had put it there: whether a plan did,
        the match's `item_id` tells. In a control run each request is cold by a salt of its own.
        """
        run = await _begin(target, context)
        # Heads are counted before the clock of any request runs.
        heads = list(dict.fromkeys(_head(lookup) for lookup in lookups))
        counts = await together(_whole_or_none(head, run) for head in heads)
        whole = dict(zip(heads, counts, strict=True))
        return await together(_find(lookup, whole[_head(lookup)], run) for lookup in lookups)


@dataclass(frozen=True)
class _Run:
    """One call: the host, what it serves and can do now, and the run it belongs to."""

    host: ModelHost
    served: set[str]
    can: Capabilities
    context: Context

    def problem(self, head: Head) -> str | None:
        """Say why this host can't have a head; None: it can."""
        if self.host.model(head) not in self.served:
            return "the host does not serve its model"
        if not self.can.tokenize:
            return "the host has no /tokenize, by which heads are counted"
        return None

    async def whole_blocks(self, head: Head) -> int:
        """Return the tokens of a head that fill whole cache blocks: only these are kept."""
        shared = await self.host.count_head(head)
        return shared // self.can.block_size * self.can.block_size

    def salt(self, tenant: str, head: Head, once: str = "") -> str | None:
        return salt_for(self.host, self.context, tenant, head.adapter, once)


async def _begin(target: Target, context: Context) -> _Run:
    host = as_host(target)
    return _Run(host, await host.served(), await host.capabilities(), context)


async def _warm(item: PlanItem, run: _Run) -> Outcome:
    head = _head(item)
    if problem := run.problem(head):
        return Outcome(item.item_id, "skipped", error=problem)
    try:
        whole = await run.whole_blocks(head)
        if not whole:
            return Outcome(item.item_id, "skipped", error="shorter than one cache block")
        answer = await run.host.chat(
            Chat(
                head,
                WARM_TEXT,
                salt=run.salt(item.tenant, head),
                headers=own(run.context.plan_id, item.item_id),
            )
        )
    except (RequestRefused, InputDataError) as error:
        return Outcome(item.item_id, "failed", error=str(error))
    cached = answer.cached_tokens or 0
    return Outcome(
        item.item_id,
        "already" if cached >= whole else "warmed",
        tokens=answer.prompt_tokens - cached,
        ms=answer.total_ms,
    )


async def _prove(item: PlanItem, run: _Run) -> Proof:
    head = _head(item)
    if problem := run.problem(head):
        return Proof(item.item_id, False, problem)
    if not run.can.cached_tokens:
        return Proof(item.item_id, False, "the host reports no cached tokens")
    try:
        whole = await run.whole_blocks(head)
        answer = await run.host.chat(
            Chat(
                head,
                PROBE_TEXT,
                salt=run.salt(item.tenant, head),
                headers=own(run.context.plan_id, item.item_id),
            )
        )
    except (RequestRefused, InputDataError) as error:
        return Proof(item.item_id, False, str(error))
    cached = answer.cached_tokens or 0
    return Proof(item.item_id, cached >= whole > 0, f"cached={min(cached, whole)}/{whole}")


async def _find(lookup: Lookup, whole: int | None, run: _Run) -> Match:
    head = _head(lookup)
    if whole is None:
        return Match(lookup.request_id, False)
    try:
        answer = await run.host.chat(
            Chat(
                head,
                lookup.prompt,
                salt=run.salt(lookup.tenant, head, lookup.request_id),
                low_priority=False,
                stream=True,
                headers=own(run.context.plan_id),
            )
        )
    except RequestRefused:
        return Match(lookup.request_id, False)
    hit = (answer.cached_tokens or 0) >= whole > 0
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


async def _whole_or_none(head: Head, run: _Run) -> int | None:
    """Return the whole blocks of a head; None: this host can't be asked about it."""
    if run.problem(head):
        return None
    try:
        return await run.whole_blocks(head)
    except (RequestRefused, InputDataError):
        return None


def _head(of: PlanItem | Lookup) -> Head:
    return Head(of.model, of.system_prompt, of.tools, of.adapter)


def _reasons(heads: pa.Table, config: Config) -> Any:
    """Return why each head may not be warmed; empty: it may."""
    eighths = pc.add(_eighths(heads["system_prompt"]), _eighths(heads["tools"]))
    short = pc.less(eighths, 8 * config.layers.prefixes.min_tokens)
    rest = pc.if_else(short, pa.scalar("short_head"), pa.scalar(""))
    away = pc.if_else(unserved(heads["adapter"], config), pa.scalar(UNSERVED), rest)
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
