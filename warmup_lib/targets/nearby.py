"""Search indexes over entries that hold a vector, and what of a Redis begins with a prefix."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from posixpath import commonprefix

from warmup_lib.search import (
    ANSWER_TAGS,
    Command,
    Near,
    Point,
    create_answer_index,
    create_vector_index,
    near_in,
    search,
)
from warmup_lib.targets.store import RedisStore

_SCAN = 1000


async def ensure_vector_index(store: RedisStore, name: str, dimension: int) -> None:
    """Create the index of the hashes whose keys begin with its name, where there is none.

    Raises:
        StoreUnavailable: The Redis does not answer, or refuses.
    """
    await _ensure(store, name, create_vector_index(name, dimension))


async def ensure_answer_index(store: RedisStore, name: str, dimension: int) -> None:
    """Create the index of a tenant's answers where there is none.

    Raises:
        StoreUnavailable: The Redis does not answer, or refuses.
    """
    if await _ensure(store, name, create_answer_index(name, dimension)):
        return
    [told] = await store.run([["FT.INFO", name]])
    attributes = dict(zip(told[::2], told[1::2], strict=False))[b"attributes"]
    has = {bytes(one[1]).decode() for one in attributes}  # an older version's index lacks some
    lacks = [tag for tag in ANSWER_TAGS if tag not in has]
    await store.run([["FT.ALTER", name, "SCHEMA", "ADD", tag, "TAG"] for tag in lacks])


async def nearest(
    store: RedisStore, points: Sequence[Point], count: int, fields: Sequence[str]
) -> list[list[Near]]:
    """Return the nearest entries of each point, nearest first; an absent index has none.

    Args:
        store: The Redis.
        points: The searches.
        count: Most entries a search.
        fields: Fields of each entry to return.

    Raises:
        StoreUnavailable: The Redis does not answer.
    """
    known = await _known(store)
    there = [n for n, point in enumerate(points) if point.index in known]
    replies = await store.run([search(points[n], count, fields) for n in there])
    found: list[list[Near]] = [[] for _ in points]
    for n, reply in zip(there, replies, strict=True):
        found[n] = near_in(reply, points[n].index)
    return found


async def _known(store: RedisStore) -> set[str]:
    [names] = await store.run([["FT._LIST"]])
    return {bytes(name).decode() for name in names}


async def _ensure(store: RedisStore, name: str, create: Command) -> bool:
    """Create an index where there is none; return whether there was none."""
    if name in await _known(store):
        return False
    await store.run([create])
    return True


def _flat(name: str, dimension: int) -> list[str]:
    kind = ["VECTOR", "FLAT", "6", "TYPE", "FLOAT32", "DIM", str(dimension)]
    return [name, *kind, "DISTANCE_METRIC", "COSINE"]


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
