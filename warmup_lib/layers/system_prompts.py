"""Tier L1 of `embeddings`: what an application needs to know a system prompt again, by its head."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.layers.base import Context, Lookup, Match, PlanItem
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.entries import found, not_asked
from warmup_lib.layers.rows import plan_rows, refused_rows
from warmup_lib.layers.sizes import system_prompt_bytes
from warmup_lib.targets.store import Entry, RedisStore

TIER = "L1"
DIGEST = "sha256"
"""Field that holds an entry's `source_digest`."""


def content_digest(system_prompt: str | None, tools: str | None) -> str:
    """Return the SHA-256 of a head as sent: system prompt, NUL, tools as JSON without spaces."""
    return hashlib.sha256(f"{system_prompt or ''}\0{tools or ''}".encode()).hexdigest()


def candidates(demand: Demand, config: Config) -> pa.Table:
    """Return one row a tenant and head with a system prompt."""
    heads = _with_prompt(demand.heads)
    heads = heads.filter(pc.is_null(heads["unwarmable"]))
    texts = zip(heads["system_prompt"].to_pylist(), heads["tools"].to_pylist(), strict=True)
    columns = {
        "key_digest": heads["head_digest"],
        "tier": TIER,
        "source_digest": pa.array([content_digest(*text) for text in texts], pa.string()),
        "bytes": system_prompt_bytes(),
        "ttl_s": int(config.layers.embeddings.system_prompt_ttl.total_seconds()),
    }
    return plan_rows("embeddings", heads, columns)


def refused(demand: Demand) -> pa.Table:
    """Return the heads that may not be warmed, with the reason."""
    heads = _with_prompt(demand.heads)
    heads = heads.filter(pc.is_valid(heads["unwarmable"]))
    return refused_rows("embeddings", heads, "head_digest", heads["unwarmable"])


def entry(item: PlanItem, context: Context) -> Entry:
    """Return what is stored of a system prompt: its digest and length, never its text."""
    fields: dict[str, bytes | str | float] = {
        "item_id": item.item_id,
        DIGEST: item.source_digest or "",
        "characters": len(item.system_prompt or ""),
        "model": item.model,
    }
    return Entry(context.places.system_prompt(item, item.key_digest), fields, item.ttl_s)


async def find(lookups: Sequence[Lookup], store: RedisStore, context: Context) -> list[Match]:
    """Find the entry of each request's head; one without a system prompt asks for none."""
    keys = [context.places.system_prompt(lookup, lookup.head_digest) for lookup in lookups]
    held = await store.read(keys, ("item_id",))
    return [
        found(lookup, fields) if lookup.system_prompt else not_asked(lookup)
        for lookup, fields in zip(lookups, held, strict=True)
    ]


def _with_prompt(heads: pa.Table) -> pa.Table:
    return heads.filter(pc.not_equal(pc.fill_null(heads["system_prompt"], ""), ""))
