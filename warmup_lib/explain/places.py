"""Which digests a miss asked for, and under which keys they would lie."""

from __future__ import annotations

from collections.abc import Sequence

from warmup_lib.explain.miss import L1, L2, L3, PREFIXES, Miss
from warmup_lib.keys import Keys
from warmup_lib.places import EMBEDDINGS, RESPONSES, RETRIEVAL, Places


def digests(miss: Miss, keys: Keys) -> Sequence[str]:
    """Return the digests in the keys that would serve a miss; none for a similar chunk list."""
    asked = miss.asked
    if miss.layer == RESPONSES:
        return (asked.response_digest,)
    if miss.layer == PREFIXES or miss.tier == L1:
        return (asked.head_digest,)
    if miss.tier == L2:
        return (keys.segment_digest(asked.user_segment or ""),)
    if miss.layer == EMBEDDINGS:
        return (asked.text_digest,)
    if miss.layer == RETRIEVAL and miss.tier is None:
        return tuple(keys.chunk_digest(chunk) for chunk in asked.chunk_ids or ())
    return ()


def own_keys(miss: Miss, places: Places) -> Sequence[str]:
    """Return the keys that would serve a miss on a Redis, and the indexes to search there."""
    asked, found = miss.asked, digests(miss, places.keys)
    if miss.layer == RESPONSES:
        return (*[places.answer(asked, one) for one in found], places.answers(asked.tenant))
    if miss.tier == L1:
        return tuple(places.system_prompt(asked, one) for one in found)
    if miss.tier == L2:
        return tuple(places.segment(asked.tenant, one) for one in found)
    if miss.tier == L3:
        return (places.list_of(asked.tenant, asked.text_digest), places.lists(asked.tenant))
    if miss.layer == EMBEDDINGS:
        return tuple(places.embedding(asked.tenant, one) for one in found)
    if miss.layer == RETRIEVAL:
        return (
            *[places.chunk(asked.tenant, one) for one in found],
            places.chunks(asked.tenant),
        )
    return ()
