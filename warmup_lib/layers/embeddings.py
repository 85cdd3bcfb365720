"""Layer `embeddings`: the vector of a text, by the text's identity, on a Redis."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
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
from warmup_lib.layers.entries import encoder_problem, proof, raw, receipt, under
from warmup_lib.layers.rows import plan_rows, refused_rows
from warmup_lib.layers.sizes import embedding_bytes
from warmup_lib.targets.base import Target
from warmup_lib.targets.store import Entry, as_store


class Embeddings(Layer):
    """One entry a distinct text of a tenant, under the encoder's fingerprint."""

    name = "embeddings"
    target_kind: Literal["redis", "host"] = "redis"
    match: Literal["exact", "semantic"] = "exact"

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return one row a tenant and text; its heat is the sum over the requests that hold it."""
        texts = _texts(demand.prompts.filter(pc.is_null(demand.prompts["unwarmable"])))
        columns = {
            "key_digest": texts["text_digest"],
            "encoder": demand.encoder,
            "bytes": embedding_bytes(demand.dimension),
            "ttl_s": int(config.layers.embeddings.ttl.total_seconds()),
        }
        return plan_rows(self.name, texts, columns)

    def refused(self, demand: Demand, config: Config) -> pa.Table:  # noqa: ARG002
        """Return the texts that no request may have warmed, with the reason."""
        texts = _texts(demand.prompts)
        texts = texts.filter(pc.not_equal(texts["unwarmable"], ""))
        return refused_rows(self.name, texts, "text_digest", texts["unwarmable"])

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Write the vectors; an item without one under this encoder fails."""
        store = as_store(target)
        vectors = context.vectors.get([item.key_digest for item in items])
        outcomes: dict[str, Outcome] = {}
        ready: list[PlanItem] = []
        for item in items:
            if problem := encoder_problem(item, vectors.get(item.key_digest), context):
                outcomes[item.item_id] = Outcome(item.item_id, "failed", error=problem)
            else:
                ready.append(item)
        start = time.perf_counter()
        written = await store.write(
            [
                Entry(
                    _key(item.tenant, item.key_digest, context),
                    raw(vectors[item.key_digest]),
                    item.ttl_s,
                )
                for item in ready
            ]
        )
        ms = (time.perf_counter() - start) * 1000 / max(1, len(ready))
        for item, done in zip(ready, written, strict=True):
            outcomes[item.item_id] = receipt(item, done, ms)
        return [outcomes[item.item_id] for item in items]

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Look for each key: present, of a vector's size, with a lifetime."""
        keys = [_key(item.tenant, item.key_digest, context) for item in items]
        seen = await as_store(target).look(keys)
        size = 4 * context.vectors.dimension
        return [proof(item.item_id, one, size) for item, one in zip(items, seen, strict=True)]

    async def find(
        self, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Find each text's vector by its identity."""
        keys = [_key(lookup.tenant, lookup.text_digest, context) for lookup in lookups]
        seen = await as_store(target).look(keys)
        size = 4 * context.vectors.dimension
        matches = []
        for lookup, one in zip(lookups, seen, strict=True):
            ident = item_id(self.name, lookup.tenant, lookup.text_digest)
            found = proof(ident, one, size).resident
            matches.append(
                Match(lookup.request_id, True, "exact", item_id=ident)
                if found
                else Match(lookup.request_id, False)
            )
        return matches


def _key(tenant: str, text_digest: str, context: Context) -> str:
    layer = under(Embeddings.name, context.vectors.encoder)
    return context.keys.key(layer, context.namespace(tenant), text_digest)


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
