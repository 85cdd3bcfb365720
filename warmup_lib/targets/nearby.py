"""Search indexes over entries that hold a vector, and what of a Redis begins with a prefix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import commonprefix
from typing import Any

from warmup_lib.targets.store import Command, RedisStore

_SCAN = 1000
_VECTOR = "vector"
_ANSWER_VECTOR = "prompt_vector"
_ANSWER_TAGS = ("context", "signature")
_WORDS_ALONE = ("NOOFFSETS", "NOHL", "NOFREQS")
"""Texts are indexed because RedisVL declares them so, not to search for phrases or to rank: an
entry then takes less memory and is written faster."""


@dataclass(frozen=True)
class Point:
    """Where to look for the nearest entries.

    Attributes:
        index: The index.
        vector: A vector as its entries hold it.
        tags: Of answers: `context` and `signature`, which an entry must have too.
    """

    index: str
    vector: bytes
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Near:
    """One entry that a search found, nearest first."""

    key: str
    similarity: float
    fields: Mapping[str, bytes] = field(default_factory=dict)


async def ensure_vector_index(store: RedisStore, name: str, dimension: int) -> None:
    """Create the index of the hashes whose keys begin with its name, where there is none.

    Raises:
        StoreUnavailable: The Redis does not answer, or refuses.
    """
    await _ensure(store, name, f"{name}:", _flat(_VECTOR, dimension))


async def ensure_answer_index(store: RedisStore, name: str, dimension: int) -> None:
    """Create the index of a tenant's answers where there is none.

    Field names and types are those of RedisVL's SemanticCache with two filterable fields, `context`
    and `signature`, so that an unmodified one opens the index and finds the entries. It takes the
    index name for the key prefix too.

    Raises:
        StoreUnavailable: The Redis does not answer, or refuses.
    """
    schema = ["prompt", "TEXT", "response", "TEXT", "inserted_at", "NUMERIC"]
    schema += ["updated_at", "NUMERIC", *_flat(_ANSWER_VECTOR, dimension)]
    schema += [part for tag in _ANSWER_TAGS for part in (tag, "TAG")]
    if await _ensure(store, name, name, schema):
        return
    [told] = await store.run([["FT.INFO", name]])
    attributes = dict(zip(told[::2], told[1::2], strict=False))[b"attributes"]
    has = {bytes(one[1]).decode() for one in attributes}  # an older version's index lacks some
    lacks = [tag for tag in _ANSWER_TAGS if tag not in has]
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
    replies = await store.run([_search(points[n], count, fields) for n in there])
    found: list[list[Near]] = [[] for _ in points]
    for n, reply in zip(there, replies, strict=True):
        found[n] = _near_in(reply, points[n].index)
    return found


async def _known(store: RedisStore) -> set[str]:
    [names] = await store.run([["FT._LIST"]])
    return {bytes(name).decode() for name in names}


async def _ensure(store: RedisStore, name: str, prefix: str, schema: Sequence[str]) -> bool:
    """Create an index where there is none; return whether there was none."""
    if name in await _known(store):
        return False
    rule = ["ON", "HASH", "PREFIX", "1", prefix, *_WORDS_ALONE]
    await store.run([["FT.CREATE", name, *rule, "SCHEMA", *schema]])
    return True


def _flat(name: str, dimension: int) -> list[str]:
    kind = ["VECTOR", "FLAT", "6", "TYPE", "FLOAT32", "DIM", str(dimension)]
    return [name, *kind, "DISTANCE_METRIC", "COSINE"]


def _search(point: Point, count: int, fields: Sequence[str]) -> Command:
    tags = " ".join(f"@{name}:{{{value}}}" for name, value in point.tags.items())
    among = f"({tags})" if tags else "*"
    of = _ANSWER_VECTOR if tags else _VECTOR
    query = f"{among}=>[KNN {count} @{of} $v AS distance]"
    returned = ["RETURN", str(len(fields) + 1), "distance", *fields]
    tail = ["SORTBY", "distance", *returned, "LIMIT", "0", str(count), "DIALECT", "2"]
    return ["FT.SEARCH", point.index, query, "PARAMS", "2", "v", point.vector, *tail]


def _near_in(reply: Any, index: str) -> list[Near]:
    """Return the entries in a search reply.

    An index may take in every key that begins with its name; only those with a `:` after the name
    are its own, should the name of another encoder's index begin with this one.
    """
    found = []
    for key, pairs in zip(reply[1::2], reply[2::2], strict=True):
        expired = not pairs  # between the search and the reading of its fields
        if expired or not key.startswith(f"{index}:".encode()):
            continue
        fields = {n.decode(): v for n, v in zip(pairs[::2], pairs[1::2], strict=True)}
        if "distance" in fields:
            distance = float(fields.pop("distance"))
            found.append(Near(key.decode(), 1.0 - distance, fields))
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
