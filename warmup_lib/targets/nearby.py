"""Search indexes over entries with a `vector` field, and what of a Redis begins with a prefix."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from posixpath import commonprefix

from warmup_lib.targets.store import Command, Near, RedisStore, near_in

_SCAN = 1000


@dataclass(frozen=True)
class Point:
    """Where to look for the nearest entries: an index, and a vector as its entries hold it."""

    index: str
    vector: bytes


async def ensure_vector_index(store: RedisStore, name: str, dimension: int) -> None:
    """Create the index of the hashes whose keys begin with its name, where there is none.

    Raises:
        StoreUnavailable: The Redis does not answer, or refuses.
    """
    [known] = await store.run([["FT._LIST"]])
    if name.encode() in {bytes(one) for one in known}:
        return
    vector = ["vector", "VECTOR", "FLAT", "6", "TYPE", "FLOAT32", "DIM", str(dimension)]
    schema = ["SCHEMA", *vector, "DISTANCE_METRIC", "COSINE"]
    await store.run([["FT.CREATE", name, "ON", "HASH", "PREFIX", "1", f"{name}:", *schema]])


async def nearest(
    store: RedisStore, points: Sequence[Point], count: int, fields: Sequence[str]
) -> list[list[Near]]:
    """Return the nearest entries of each point, nearest first; an absent index has none.

    Raises:
        StoreUnavailable: The Redis does not answer.
    """
    known = {bytes(one) for [names] in [await store.run([["FT._LIST"]])] for one in names}
    query = f"*=>[KNN {count} @vector $v AS distance]"
    returned = ["RETURN", str(len(fields) + 1), "distance", *fields]
    tail: Command = ["SORTBY", "distance", *returned, "LIMIT", "0", str(count), "DIALECT", "2"]
    there = [n for n, point in enumerate(points) if point.index.encode() in known]
    replies = await store.run(
        [
            ["FT.SEARCH", points[n].index, query, "PARAMS", "2", "v", points[n].vector, *tail]
            for n in there
        ]
    )
    found: list[list[Near]] = [[] for _ in points]
    for n, reply in zip(there, replies, strict=True):
        found[n] = near_in(reply, points[n].index)
    return found


async def drop_others(store: RedisStore, prefixes: Sequence[str], kept: Collection[str]) -> int:
    """Delete the entries under some prefixes that are not kept; return how many there were.

    Args:
        store: The Redis, which is passed over once.
        prefixes: What the keys begin with.
        kept: Keys that stay.

    Raises:
        StoreUnavailable: The Redis does not answer.
    """
    cursor, found = 0, set()
    pattern = f"{commonprefix(prefixes)}*"
    while True:
        [reply] = await store.run([["SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN]])
        cursor = int(reply[0])
        found |= {key.decode() for key in reply[1]}
        if cursor == 0:
            break
    stale = sorted(
        key for key in found - set(kept) if any(key.startswith(prefix) for prefix in prefixes)
    )
    await store.run([["UNLINK", key] for key in stale])
    return len(stale)
