"""What the layers on a Redis share: vectors as bytes, receipts of writes, proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from warmup_lib.keys import key_hash
from warmup_lib.layers.base import (
    Context,
    Lookup,
    Match,
    MatchKind,
    Outcome,
    PlanItem,
    Proof,
    Vector,
)
from warmup_lib.targets.store import RedisStore, Seen, Written

ABSENT = "absent"
"""Evidence of a key that is not there."""


def raw(vector: Vector) -> bytes:
    """Return a vector as an entry holds it: float32, little endian."""
    return np.asarray(vector, dtype="<f4").tobytes()


def encoder_problem(item: PlanItem, vector: Vector | None, context: Context) -> str | None:
    """Say why an item can't be warmed with this vector; None: it can."""
    if item.encoder != context.vectors.encoder:
        return "planned under another encoder: make a new plan"
    if vector is None:
        return "no vector of this text: embed the day again"
    return None


def receipt(item: PlanItem, written: Written, ms: float, tokens: int = 0) -> Outcome:
    """Return the outcome of one write, which may have cost prompt tokens before."""
    return Outcome(
        item.item_id,
        "failed" if written.error else "warmed",
        bytes=written.bytes,
        tokens=tokens,
        ms=ms,
        ttl_s=written.ttl_s,
        error=written.error,
        key_hash=key_hash(written.key),
    )


def proof(item_id: str, seen: Seen | None, size: int) -> Proof:
    """Judge a look at a key: present, its vector of `size` bytes, and with a lifetime."""
    if seen is None:
        return Proof(item_id, False, ABSENT)
    if seen.bytes != size:
        return Proof(item_id, False, f"vector of {seen.bytes} bytes, {size} expected")
    if seen.ttl_s < 0:
        return Proof(item_id, False, "no ttl")
    return Proof(item_id, True, f"ttl={seen.ttl_s}s")


async def prove_content(
    items: Sequence[PlanItem],
    keys: Sequence[str],
    store: RedisStore,
    field: str,
    size: int | None = None,
) -> list[Proof]:
    """Judge hashes: present, made from the content that the plan knows, with a lifetime.

    Args:
        items: The items.
        keys: Their keys.
        store: The Redis.
        field: The field that holds an item's `source_digest`.
        size: Bytes that a vector in the field `vector` must have; None: there is none.

    Raises:
        StoreUnavailable: The Redis does not answer.
    """
    seen = await store.look(keys, field if size is None else "vector")
    held = await store.read(keys, (field,))
    proofs = []
    for item, look, fields in zip(items, seen, held, strict=True):
        if look is not None and fields is None:
            judged = Proof(item.item_id, False, ABSENT)
        elif fields is not None and fields[field].decode() != item.source_digest:
            judged = Proof(item.item_id, False, "made from other content")
        else:
            judged = proof(
                item.item_id, look, len(item.source_digest or "") if size is None else size
            )
        proofs.append(judged)
    return proofs


def found(lookup: Lookup, fields: Mapping[str, bytes] | None, kind: MatchKind = "exact") -> Match:
    """Return the match of a request that asked, by the fields of the entry for it; None: a miss."""
    if fields is None:
        return Match(lookup.request_id, False)
    return Match(lookup.request_id, True, kind, item_id=fields["item_id"].decode())


def not_asked(lookup: Lookup) -> Match:
    """Return the match of a request that asks nothing of a layer."""
    return Match(lookup.request_id, False, asked=False)
