"""Layer `retrieval`: the vectors of a tenant's chunks, and ready chunk lists of clusters (L3).

An entry knows the digest of the content it was made from, so that an apply writes again what has
changed and nothing else. On a Redis with the search module both kinds can be searched by vector;
elsewhere they are found by their keys, and `layers/index_file.py` writes a FAISS file beside.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.layers import lists
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
)
from warmup_lib.layers.corpus import Chunk, Corpus, corpora, source_digest
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.entries import (
    encoder_problem,
    found,
    not_asked,
    prove_content,
    raw,
    receipt,
)
from warmup_lib.layers.rows import plan_rows, refused_rows
from warmup_lib.layers.sizes import chunk_bytes, list_bytes
from warmup_lib.places import RETRIEVAL
from warmup_lib.tables import INT, PLAN, STR, STRS
from warmup_lib.targets.base import Target
from warmup_lib.targets.nearby import drop_others, ensure_vector_index
from warmup_lib.targets.store import Entry, RedisStore, Seen, as_store

NO_VECTOR = "no_vector"
"""Why a chunk is left out: it is empty or longer than the encoder reads."""

DIGEST = "source_digest"


class Retrieval(Layer):
    """One entry a chunk of a tenant, and one a cluster of its prompts (L3)."""

    name = RETRIEVAL
    target_kind: Literal["redis", "host"] = "redis"
    match: Literal["exact", "semantic"] = "exact"
    needs = ("embeddings",)
    tiers: Mapping[str, Literal["exact", "semantic"]] = {lists.TIER: "semantic"}
    by_request = False

    def limits(self, config: Config) -> Mapping[str | None, int]:
        """Return how many chunks and lists a plan may hold."""
        return {None: config.layers.retrieval.items, lists.TIER: config.layers.retrieval.lists}

    def candidates(self, demand: Demand, config: Config) -> pa.Table:
        """Return one row a chunk, then one a cluster with heat.

        The heat of a chunk is that of the requests that retrieved it or, where this is more, of
        the clusters whose list holds it.
        """
        logged = _logged(demand)
        parts = [
            part
            for corpus in corpora(demand)
            for part in _of_tenant(corpus, logged, demand, config)
        ]
        return pa.concat_tables(parts) if parts else PLAN.empty()

    def refused(self, demand: Demand, config: Config) -> pa.Table:  # noqa: ARG002
        """Return the chunks that have no vector."""
        logged = _logged(demand)
        without = [(c.tenant, chunk) for c in corpora(demand) for chunk in c.without]
        rows = pa.table(
            {
                "tenant": pa.array([tenant for tenant, _ in without], STR),
                "digest": pa.array([chunk.chunk_digest for _, chunk in without], STR),
                "heat_micro": pa.array([logged[t, c.chunk_id] for t, c in without], INT),
            }
        )
        return refused_rows(self.name, rows, "digest", NO_VECTOR)

    async def arrange(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> Arranged:
        """Create the indexes, and take away what a plan for everything holds no more."""
        store = as_store(target)
        tenants = sorted({item.tenant for item in items})
        names = [
            name
            for tenant in tenants
            for name in (context.places.chunks(tenant), context.places.lists(tenant))
        ]
        if await store.has_search():
            for name in names:
                await ensure_vector_index(store, name, context.vectors.dimension)
        if not context.complete:
            return Arranged(items)
        kept = [_item_key(item, context) for item in items]
        gone = await drop_others(store, [f"{name}:" for name in names], kept)
        notes = [f"chunks and lists that are wanted no more, taken away: {gone}"] if gone else []
        return Arranged(items, notes=notes)

    async def warm(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Outcome]:
        """Write what is not there as planned; what is, is `already`, its lifetime renewed."""
        store = as_store(target)
        vectors = context.vectors.get([item.text_digest or "" for item in items])
        problems = {
            item.item_id: problem
            for item in items
            if (problem := encoder_problem(item, vectors.get(item.text_digest or ""), context))
        }
        ready = [item for item in items if item.item_id not in problems]
        keys = [_item_key(item, context) for item in ready]
        start = time.perf_counter()
        there = await _as_planned(ready, keys, store, context)
        written = await store.write(
            [
                Entry(
                    key,
                    {DIGEST: item.source_digest or ""}
                    if same
                    else _fields(item, vectors[item.text_digest or ""]),
                    item.ttl_s,
                )
                for item, key, same in zip(ready, keys, there, strict=True)
            ]
        )
        ms = (time.perf_counter() - start) * 1000 / max(1, len(ready))
        outcomes = {i: Outcome(i, "failed", error=problem) for i, problem in problems.items()}
        for item, same, done in zip(ready, there, written, strict=True):
            outcomes[item.item_id] = (
                replace(receipt(item, done, ms), status="already", bytes=0)
                if same and not done.error
                else receipt(item, done, ms)
            )
        return [outcomes[item.item_id] for item in items]

    async def prove(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> list[Proof]:
        """Look for each entry: of the planned content, with a vector and a lifetime."""
        keys = [_item_key(item, context) for item in items]
        size = 4 * context.vectors.dimension
        return await prove_content(items, keys, as_store(target), DIGEST, size)

    async def find(
        self, lookups: Sequence[Lookup], target: Target, context: Context
    ) -> list[Match]:
        """Find the chunks that each request retrieved: a hit where all of them are there.

        A request that is not known to have retrieved anything asks for nothing.
        """
        keys = [
            context.places.chunk(one.tenant, context.keys.chunk_digest(chunk))
            for one in lookups
            for chunk in one.chunk_ids or ()
        ]
        held = iter(await as_store(target).read(keys, ("item_id",)))
        return [
            _all_found(lookup, [next(held) for _ in lookup.chunk_ids], context)
            if lookup.chunk_ids
            else not_asked(lookup)
            for lookup in lookups
        ]

    async def find_tier(
        self,
        tier: str,  # noqa: ARG002
        lookups: Sequence[Lookup],
        target: Target,
        context: Context,
    ) -> list[Match]:
        """Find the list of the cluster nearest to each request that retrieved something."""
        return await lists.find(lookups, as_store(target), context)

    async def audit(
        self, items: Sequence[PlanItem], target: Target, context: Context
    ) -> Mapping[str, int]:
        """Compare each stored list with a fresh search: `lists_checked`, `lists_equal`."""
        return await lists.audit(items, as_store(target), context)


def _of_tenant(
    corpus: Corpus, logged: Counter[tuple[str, str]], demand: Demand, config: Config
) -> list[pa.Table]:
    settings = config.layers.retrieval
    found_lists = corpus.lists(settings.top)
    used: Counter[str] = Counter()
    for cluster, chunks in zip(corpus.clusters, found_lists, strict=True):
        used.update({chunk.chunk_id: cluster.heat_micro for chunk in chunks})
    heat = [max(logged[corpus.tenant, c.chunk_id], used[c.chunk_id]) for c in corpus.chunks]
    shared = {"encoder": demand.encoder, "ttl_s": int(settings.ttl.total_seconds())}
    rows = _rows(corpus.tenant, heat)
    columns = shared | _chunk_columns(corpus.chunks, demand)
    of_chunks = plan_rows(Retrieval.name, rows, columns, by_content=True)
    rows = _rows(corpus.tenant, [cluster.heat_micro for cluster in corpus.clusters])
    columns = shared | {
        "tier": lists.TIER,
        "key_digest": pa.array([cluster.medoid for cluster in corpus.clusters], STR),
        "text_digest": pa.array([cluster.medoid for cluster in corpus.clusters], STR),
        "chunk_ids": pa.array([[c.chunk_id for c in chunks] for chunks in found_lists], STRS),
        "source_digest": _digests(found_lists, demand.encoder),
        "bytes": list_bytes(demand.dimension, settings.top),
    }
    return [of_chunks, plan_rows(Retrieval.name, rows, columns, by_content=True)]


def _chunk_columns(chunks: Sequence[Chunk], demand: Demand) -> dict[str, Any]:
    return {
        "key_digest": pa.array([chunk.chunk_digest for chunk in chunks], STR),
        "text_digest": pa.array([chunk.text_digest for chunk in chunks], STR),
        "document": pa.array([chunk.document for chunk in chunks], STR),
        "chunk_ids": pa.array([[chunk.chunk_id] for chunk in chunks], STRS),
        "source_digest": _digests([[chunk] for chunk in chunks], demand.encoder),
        "bytes": chunk_bytes(demand.dimension),
    }


def _digests(of: Sequence[Sequence[Chunk]], encoder: str) -> pa.Array:
    return pa.array([source_digest(encoder, chunks) for chunks in of], STR)


def _rows(tenant: str, heat: Sequence[int]) -> pa.Table:
    return pa.table(
        {"tenant": pa.array([tenant] * len(heat), STR), "heat_micro": pa.array(heat, INT)}
    )


def _logged(demand: Demand) -> Counter[tuple[str, str]]:
    """Return the heat of the requests that retrieved each chunk, by tenant and chunk id."""
    heat: Counter[tuple[str, str]] = Counter()
    prompts = demand.prompts.select(["tenant", "chunk_ids", "heat_micro"])
    for row in prompts.filter(pc.is_valid(prompts["chunk_ids"])).to_pylist():
        for chunk_id in row["chunk_ids"]:
            heat[row["tenant"], chunk_id] += row["heat_micro"]
    return heat


async def _as_planned(
    items: Sequence[PlanItem], keys: Sequence[str], store: RedisStore, context: Context
) -> list[bool]:
    """Return which entries are whole and made from the planned content."""
    held = await store.read(keys, (DIGEST,))
    seen = await store.look(keys, "vector")
    size = 4 * context.vectors.dimension
    return [
        fields is not None and fields[DIGEST].decode() == item.source_digest and _whole(look, size)
        for item, fields, look in zip(items, held, seen, strict=True)
    ]


def _whole(seen: Seen | None, size: int) -> bool:
    return seen is not None and seen.bytes == size


def _fields(item: PlanItem, vector: Vector) -> dict[str, bytes | str | float]:
    fields: dict[str, bytes | str | float] = {
        "item_id": item.item_id,
        DIGEST: item.source_digest or "",
        "vector": raw(vector),
    }
    chunk_ids = list(item.chunk_ids or ())
    if item.tier == lists.TIER:
        return fields | {"chunk_ids": json.dumps(chunk_ids)}
    return fields | {"chunk_id": chunk_ids[0], "document": item.document or ""}


def _item_key(item: PlanItem, context: Context) -> str:
    place = context.places.list_of if item.tier == lists.TIER else context.places.chunk
    return place(item.tenant, item.key_digest)


def _all_found(
    lookup: Lookup, held: Sequence[Mapping[str, bytes] | None], context: Context
) -> Match:
    """Return a hit where every chunk is there, of this plan where one of another is not wanted."""
    if any(fields is None for fields in held):
        return Match(lookup.request_id, False)
    owners = [fields["item_id"].decode() for fields in held if fields is not None]
    strange = [owner for owner in owners if context.planned and owner not in context.planned]
    return found(lookup, {"item_id": (strange or owners)[0].encode()})
