"""Tier L3 of `retrieval`: the chunk ids that answer a cluster of prompts, found by its medoid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from warmup_lib.layers.base import Context, Lookup, Match, PlanItem
from warmup_lib.layers.entries import found, not_asked, raw
from warmup_lib.search import Near, Point
from warmup_lib.targets.nearby import nearest
from warmup_lib.targets.store import RedisStore

TIER = "L3"

_LOOKED_AT = 8
"""Lists looked at for a request: one of the plan goes before what another one left."""
_ROUNDING = 1e-5
"""Cosines of Redis and of the plan differ by float32 rounding."""


async def find(lookups: Sequence[Lookup], store: RedisStore, context: Context) -> list[Match]:
    """Find the list nearest to each request; without the search module, that of its very text."""
    asked = [n for n, lookup in enumerate(lookups) if lookup.chunk_ids]
    ours = [lookups[n] for n in asked]
    look = _similar if await store.has_search() else _equal
    matches = dict(zip(asked, await look(ours, store, context), strict=True))
    return [matches.get(n) or not_asked(lookup) for n, lookup in enumerate(lookups)]


async def _equal(lookups: Sequence[Lookup], store: RedisStore, context: Context) -> list[Match]:
    keys = [context.places.list_of(one.tenant, one.text_digest) for one in lookups]
    held = await store.read(keys, ("item_id", "chunk_ids"))
    return [_match(lookup, fields, None) for lookup, fields in zip(lookups, held, strict=True)]


async def _similar(lookups: Sequence[Lookup], store: RedisStore, context: Context) -> list[Match]:
    known = context.vectors.get([one.text_digest for one in lookups if one.vector is None])
    vectors = [
        one.vector if one.vector is not None else known.get(one.text_digest) for one in lookups
    ]
    points = [
        Point(context.places.lists(one.tenant), raw(vector))
        for one, vector in zip(lookups, vectors, strict=True)
        if vector is not None
    ]
    near = iter(await nearest(store, points, _LOOKED_AT, ("item_id", "chunk_ids")))
    matches = []
    for lookup, vector in zip(lookups, vectors, strict=True):
        best = _best(next(near), context) if vector is not None else None
        matches.append(
            Match(lookup.request_id, False)
            if best is None
            else _match(lookup, best.fields, best.similarity)
        )
    return matches


def _best(near: Sequence[Near], context: Context) -> Near | None:
    planned = [one for one in near if one.fields["item_id"].decode() in context.planned]
    return next(iter(planned or near), None)


def _match(lookup: Lookup, fields: Mapping[str, bytes] | None, similarity: float | None) -> Match:
    match = found(lookup, fields, "exact" if similarity is None else "semantic")
    if fields is None:
        return match
    value, wanted = fields["chunk_ids"].decode(), set(lookup.chunk_ids or ())
    share = len(wanted & set(json.loads(value))) / len(wanted)
    return replace(match, similarity=similarity, value=value, share=share)


async def audit(
    items: Sequence[PlanItem], store: RedisStore, context: Context
) -> Mapping[str, int]:
    """Compare the stored lists of a plan with a fresh search for each medoid.

    The search goes over the chunks on the Redis, or, where it has no search module, over those of
    the plan. Chunks of one cosine may stand in any order.

    Returns:
        `lists_checked`: lists that are there; `lists_equal`: of these, what a search gives too.
    """
    ours = [item for item in items if item.tier == TIER]
    keys = [context.places.list_of(item.tenant, item.key_digest) for item in ours]
    held = await store.read(keys, ("chunk_ids",))
    there = [(item, fields) for item, fields in zip(ours, held, strict=True) if fields is not None]
    fresh = await (
        _searched([item for item, _ in there], store, context)
        if await store.has_search()
        else _computed([item for item, _ in there], items, context)
    )
    equal = sum(
        _agrees(json.loads(fields["chunk_ids"]), cosines)
        for (_, fields), cosines in zip(there, fresh, strict=True)
    )
    return {"lists_checked": len(there), "lists_equal": equal}


def _agrees(stored: Sequence[str], cosines: Mapping[str, float]) -> bool:
    best = sorted(cosines.values(), reverse=True)[: len(stored)]
    ours = [cosines.get(chunk_id, -np.inf) for chunk_id in stored]
    return len(best) == len(ours) and bool(np.allclose(ours, best, rtol=0, atol=_ROUNDING))


async def _searched(
    items: Sequence[PlanItem], store: RedisStore, context: Context
) -> list[dict[str, float]]:
    """Return the cosines of the nearest chunks on the Redis, by chunk id."""
    medoids = context.vectors.get([item.text_digest or "" for item in items])
    points = [
        Point(context.places.chunks(item.tenant), raw(medoids[item.text_digest or ""]))
        for item in items
    ]
    count = 2 * context.config.layers.retrieval.top  # chunks of one cosine may be left out else
    near = await nearest(store, points, count, ("chunk_id",))
    return [{one.fields["chunk_id"].decode(): one.similarity for one in found} for found in near]


async def _computed(
    items: Sequence[PlanItem], every: Sequence[PlanItem], context: Context
) -> list[dict[str, float]]:
    """Return the cosines of all chunks of the plan, by chunk id."""
    chunks = [item for item in every if item.tier is None]
    vectors = context.vectors.get([item.text_digest or "" for item in [*chunks, *items]])
    return [
        {
            (chunk.chunk_ids or [""])[0]: float(
                vectors[chunk.text_digest or ""] @ vectors[item.text_digest or ""]
            )
            for chunk in chunks
            if chunk.tenant == item.tenant and chunk.text_digest in vectors
        }
        for item in items
    ]
