"""Searches for the nearest entries, and their indexes, as Redis commands; and what replies say.

Nothing is sent from here: `targets.nearby` sends for the planner, `reader` for applications.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Command = Sequence[bytes | str | float]

VECTOR = "vector"
ANSWER_VECTOR = "prompt_vector"
ANSWER_TAGS = ("context", "signature")
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


def create_vector_index(name: str, dimension: int) -> Command:
    """Return the command that makes the index of the hashes whose keys begin with its name."""
    return _create(name, f"{name}:", _flat(VECTOR, dimension))


def create_answer_index(name: str, dimension: int) -> Command:
    """Return the command that makes the index of a tenant's answers.

    Field names and types are those of RedisVL's SemanticCache with two filterable fields, `context`
    and `signature`, so that an unmodified one opens the index and finds the entries. It takes the
    index name for the key prefix too.
    """
    schema = ["prompt", "TEXT", "response", "TEXT", "inserted_at", "NUMERIC"]
    schema += ["updated_at", "NUMERIC", *_flat(ANSWER_VECTOR, dimension)]
    schema += [part for tag in ANSWER_TAGS for part in (tag, "TAG")]
    return _create(name, name, schema)


def search(point: Point, count: int, fields: Sequence[str]) -> Command:
    """Return the command that finds the nearest entries.

    Args:
        point: Where to look.
        count: Most entries.
        fields: Fields of each entry to return.
    """
    tags = " ".join(f"@{name}:{{{value}}}" for name, value in point.tags.items())
    among = f"({tags})" if tags else "*"
    of = ANSWER_VECTOR if tags else VECTOR
    query = f"{among}=>[KNN {count} @{of} $v AS distance]"
    returned = ["RETURN", str(len(fields) + 1), "distance", *fields]
    tail = ["SORTBY", "distance", *returned, "LIMIT", "0", str(count), "DIALECT", "2"]
    return ["FT.SEARCH", point.index, query, "PARAMS", "2", "v", point.vector, *tail]


def near_in(reply: Any, index: str) -> list[Near]:
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


def _create(name: str, prefix: str, schema: Sequence[str]) -> Command:
    rule = ["ON", "HASH", "PREFIX", "1", prefix, *_WORDS_ALONE]
    return ["FT.CREATE", name, *rule, "SCHEMA", *schema]


def _flat(name: str, dimension: int) -> list[str]:
    kind = ["VECTOR", "FLAT", "6", "TYPE", "FLOAT32", "DIM", str(dimension)]
    return [name, *kind, "DISTANCE_METRIC", "COSINE"]
