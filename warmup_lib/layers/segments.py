"""Tier L2 of `embeddings`: what each user segment asks about, as one vector; a bounded set."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.layers.base import (
    Arranged,
    Context,
    Lookup,
    Match,
    Outcome,
    PlanItem,
    Vector,
    Vectors,
)
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.entries import found, not_asked, raw
from warmup_lib.layers.rows import plan_rows
from warmup_lib.layers.sizes import segment_bytes
from warmup_lib.places import SEGMENTS
from warmup_lib.tables import PLAN, VECTOR
from warmup_lib.targets.store import Entry, RedisStore
from warmup_lib.targets.used import keep_most_used

TIER = "L2"
DIGEST = "source_digest"

BEYOND = "more segments than this Redis keeps"
"""Why a segment is skipped, with the bound after it."""

_LEDGER = f"{SEGMENTS}.uses"
_AT_ONCE = 65_536
"""Vectors read at once: 0.1 GB at 512 dimensions."""


def candidates(demand: Demand, config: Config) -> pa.Table:
    """Return one row a tenant and segment, with the mean of what it asks for as its vector.

    Memory: the vectors of 65,536 texts.
    """
    if demand.segments is None or demand.vectors is None or not demand.segments.num_rows:
        return PLAN.empty()
    segments = demand.segments.group_by(
        ["tenant", "user_segment", "segment_digest"], use_threads=False
    ).aggregate([("heat_micro", "sum")])
    segments = segments.rename_columns([*segments.column_names[:3], "heat_micro"])
    means = _means(demand.segments, segments, demand.vectors, demand.dimension)
    has = means.any(axis=1)
    rows = segments.filter(pa.array(has))
    vectors = means[has]
    digests = [hashlib.sha256(raw(vector)).hexdigest()[:32] for vector in vectors]
    columns = {
        "key_digest": rows["segment_digest"],
        "tier": TIER,
        "encoder": demand.encoder,
        "source_digest": pa.array(digests, pa.string()),
        "vector": pa.array(list(vectors), VECTOR),
        "bytes": segment_bytes(demand.dimension),
        "ttl_s": int(config.layers.embeddings.ttl.total_seconds()),
    }
    return plan_rows("embeddings", rows, columns)


def _means(asked: pa.Table, segments: pa.Table, vectors: Vectors, dimension: int) -> Vector:
    """Return a row a segment: its texts' mean by heat, of length 1; zeros where it has none."""
    from scipy.sparse import csr_array

    place = {
        pair: n
        for n, pair in enumerate(
            zip(segments["tenant"].to_pylist(), segments["user_segment"].to_pylist(), strict=True)
        )
    }
    pairs = zip(asked["tenant"].to_pylist(), asked["user_segment"].to_pylist(), strict=True)
    rows = np.array([place[pair] for pair in pairs], dtype=np.int64)
    heat = np.asarray(asked["heat_micro"].to_numpy(), dtype=np.float64)
    texts, columns = np.unique(np.array(asked["text_digest"].to_pylist()), return_inverse=True)
    weights = csr_array((heat, (rows, columns)), shape=(len(place), len(texts)))
    total = np.zeros((len(place), dimension))
    for start, matrix in _matrices(texts.tolist(), vectors, dimension):
        total += weights[:, start : start + len(matrix)] @ matrix
    lengths = np.linalg.norm(total, axis=1, keepdims=True)
    means: Vector = np.divide(total, np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return means


def _matrices(
    digests: Sequence[str], vectors: Vectors, dimension: int
) -> Iterator[tuple[int, np.ndarray[Any, np.dtype[np.float64]]]]:
    for start in range(0, len(digests), _AT_ONCE):
        part = digests[start : start + _AT_ONCE]
        held = vectors.get(part)
        matrix = np.zeros((len(part), dimension))
        for row, digest in enumerate(part):
            if digest in held:
                matrix[row] = held[digest]
        yield start, matrix


async def arrange(items: Sequence[PlanItem], store: RedisStore, context: Context) -> Arranged:
    """Make room: a Redis keeps `layers.embeddings.segments` of them, and the least used go."""
    bound = context.config.layers.embeddings.segments
    ranked = sorted(items, key=lambda item: (-item.heat_micro, item.item_id))
    kept, beyond = ranked[:bound], ranked[bound:]
    uses = {context.places.segment(i.tenant, i.key_digest): i.heat_micro for i in kept}
    await keep_most_used(store, context.keys.ledger(_LEDGER), uses, bound)
    reason = f"{BEYOND} ({bound})"
    return Arranged(kept, [Outcome(item.item_id, "skipped", error=reason) for item in beyond])


def entry(item: PlanItem, context: Context) -> Entry:
    """Return what is stored of a segment: its vector."""
    fields: dict[str, bytes | str | float] = {
        "item_id": item.item_id,
        DIGEST: item.source_digest or "",
        "vector": raw(np.asarray(item.vector, dtype=np.float32)),
    }
    return Entry(context.places.segment(item.tenant, item.key_digest), fields, item.ttl_s)


async def find(lookups: Sequence[Lookup], store: RedisStore, context: Context) -> list[Match]:
    """Find the vector of each request's segment; one without a segment asks for none."""
    keys = [
        context.places.segment(one.tenant, context.keys.segment_digest(one.user_segment or ""))
        for one in lookups
    ]
    held = await store.read(keys, ("item_id",))
    return [
        found(lookup, fields) if (lookup.user_segment or "").strip() else not_asked(lookup)
        for lookup, fields in zip(lookups, held, strict=True)
    ]
