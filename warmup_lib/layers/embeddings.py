"""Layer `embeddings`: the vector of a text, by the text's identity, on a Redis.

Its tiers are the hashes of system prompts (L1) and the vectors of user segments (L2).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.layers import segments, system_prompts
from warmup_lib.layers.base import (
    Arranged,
    Context,
    Layer,
    Lookup,
    Match,
    Outcome,
    PlanItem,
    Proof,
    Vector,
    item_id,
)
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.entries import encoder_problem, proof, prove_content, raw, receipt
from warmup_lib.layers.rows import plan_rows, refused_rows
from warmup_lib.layers.sizes import embedding_bytes
from warmup_lib.places import EMBEDDINGS
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import Entry, as_store


class Embeddings(Layer):
    """One entry a distinct text of a tenant, one a system prompt, and one a user segment."""

    name = EMBEDDINGS
    target_kind: Literal["redis", "host"] = "redis"
    match: Literal["exact", "semantic"] = "exact"
    tiers: Mapping[str, Literal["exact", "semantic"]] = {
        system_prompts.TIER: "exact",
        segments.TIER: "exact",
    }

    def limits(self, config: Config) -> Mapping[str | None, int]:
        """Return how many texts, system prompts and segments a plan may hold."""
        settings = config.layers.embeddings
        return {
            None: settings.items,
            system_prompts.TIER: settings.system_prompts,
            segments.TIER: settings.segments,
        }

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return one row a tenant and text; its heat is the sum over the requests that hold it.

        After them come the rows of the tiers.
        """
        texts = _texts(demand.prompts.filter(pc.is_null(demand.prompts["unwarmable"])))
        columns = {
            "key_digest": texts["text_digest"],
            "encoder": demand.encoder,
            "bytes": embedding_bytes(demand.dimension),
            "ttl_s": int(config.layers.embeddings.ttl.total_seconds()),
        }
        return pa.concat_tables(
            [
                plan_rows(self.name, texts, columns),
                system_prompts.candidates(demand, config),
                segments.candidates(demand, config),
            ]
        )

    def refused(self, demand: Demand, config: Config) -> pa.Table:  # noqa: ARG002
        """Return the texts and system prompts that no request may have warmed, with the reason."""
        texts = _texts(demand.prompts)
        texts = texts.filter(pc.not_equal(texts["unwarmable"], ""))
        refused = refused_rows(self.name, texts, "text_digest", texts["unwarmable"])
        return pa.concat_tables([refused, system_prompts.refused(demand)])

    async def arrange(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> Arranged:
        """Make room for the segments, of which a Redis keeps a bounded set."""
        others = [item for item in items if item.tier != segments.TIER]
        ours = [item for item in items if item.tier == segments.TIER]
        if not ours:
            return Arranged(items)
        fitted = await segments.arrange(ours, as_store(target), context)
        return Arranged([*others, *fitted.items], fitted.skipped)

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Write the entries; a text without a vector under this encoder fails."""
        store = as_store(target)
        vectors = context.vectors.get([item.key_digest for item in items if item.tier is None])
        entries: dict[str, Entry] = {}
        outcomes: dict[str, Outcome] = {}
        for item in items:
            made = _entry(item, vectors, context)
            if isinstance(made, str):
                outcomes[item.item_id] = Outcome(item.item_id, "failed", error=made)
            else:
                entries[item.item_id] = made
        start = time.perf_counter()
        written = await store.write(list(entries.values()))
        ms = (time.perf_counter() - start) * 1000 / max(1, len(entries))
        ready = [item for item in items if item.item_id in entries]
        for item, done in zip(ready, written, strict=True):
            outcomes[item.item_id] = receipt(item, done, ms)
        return [outcomes[item.item_id] for item in items]

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Look for each key: present, with a lifetime, and of a vector's size or known content."""
        store = as_store(target)
        size = 4 * context.vectors.dimension
        texts = [item for item in items if item.tier is None]
        prompts = [item for item in items if item.tier == system_prompts.TIER]
        users = [item for item in items if item.tier == segments.TIER]
        keys = [context.places.embedding(item.tenant, item.key_digest) for item in texts]
        seen = await store.look(keys)
        proofs = [proof(i.item_id, one, size) for i, one in zip(texts, seen, strict=True)]
        keys = [context.places.system_prompt(item, item.key_digest) for item in prompts]
        proofs += await prove_content(prompts, keys, store, system_prompts.DIGEST)
        keys = [context.places.segment(item.tenant, item.key_digest) for item in users]
        proofs += await prove_content(users, keys, store, segments.DIGEST, size)
        by_id = {one.item_id: one for one in proofs}
        return [by_id[item.item_id] for item in items]

    async def find(
        self, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Find each text's vector by its identity."""
        keys = [context.places.embedding(one.tenant, one.text_digest) for one in lookups]
        seen = await as_store(target).look(keys)
        size = 4 * context.vectors.dimension
        matches = []
        for lookup, one in zip(lookups, seen, strict=True):
            ident = item_id(self.name, lookup.tenant, lookup.text_digest)
            hit = proof(ident, one, size).resident
            matches.append(
                Match(lookup.request_id, True, "exact", item_id=ident)
                if hit
                else Match(lookup.request_id, False)
            )
        return matches

    async def find_tier(
        self, tier: str, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Find the entry of each request's system prompt (L1) or user segment (L2)."""
        find = system_prompts.find if tier == system_prompts.TIER else segments.find
        return await find(lookups, as_store(target), context)


def _entry(item: PlanItem, vectors: Mapping[str, Vector], context: Context) -> Entry | str:
    """Return what to write, or why there is nothing."""
    if item.tier == system_prompts.TIER:
        return system_prompts.entry(item, context)
    if item.tier == segments.TIER:
        if item.encoder != context.vectors.encoder:
            return encoder_problem(item, None, context) or ""
        return segments.entry(item, context)
    vector = vectors.get(item.key_digest)
    if problem := encoder_problem(item, vector, context):
        return problem
    key = context.places.embedding(item.tenant, item.key_digest)
    return Entry(key, raw(vectors[item.key_digest]), item.ttl_s)


def _texts(prompts: pa.Table) -> pa.Table:
    """Return one row a tenant and text; `unwarmable` is empty where one request may warm it."""
    why = pc.fill_null(prompts["unwarmable"], "")
    table = prompts.select(["tenant", "text_digest", "text", "heat_micro"])
    grouped = table.append_column("unwarmable", why).group_by(
        ["tenant", "text_digest"], use_threads=False
    )
    texts = grouped.aggregate([("text", "min"), ("heat_micro", "sum"), ("unwarmable", "min")])
    names = ["tenant", "text_digest", "text_min", "heat_micro_sum", "unwarmable_min"]
    return texts.select(names).rename_columns([*table.column_names, "unwarmable"])
