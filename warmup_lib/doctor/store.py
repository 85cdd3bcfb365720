"""A Redis as the traps look at it: its cached answers, what their keys hold, its search indexes.

It is read only, and never whole: at most `MOST_KEYS` keys, without vectors. Texts become digests
at once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warmup_lib.keys import canonical_text, take_apart
from warmup_lib.targets.store import RedisStore

MOST_KEYS = 20_000

_PAGE = 1000
_LONGEST = 65_536
_MEANT = frozenset({"prompt", "question", "query", "input", "messages"})
_ANSWERED = frozenset({"response", "answer", "output", "completion", "result"})
_SAME = frozenset({*_MEANT, *_ANSWERED, "context", "signature", "model", "llm_string"})
_OWN_BUSINESS = frozenset(
    {"entry_id", "inserted_at", "updated_at", "created_at", "metadata", "item_id", "id", "ttl",
     "timestamp", "_index_name", "key"}
)  # fmt: skip
_TENANT = re.compile(r"(?:tenant|org|organi[sz]ation|team|customer|account|workspace)(?:_?id)?")
_DIMENSION = re.compile(
    r"(?:user|device|platform|region|country|locale|lang(?:uage)?|hour|arm|ab|variant|session|"
    r"segment|channel|client|browser|os)(?:_?(?:id|arm|test|type))?"
)
_SEPARATOR = re.compile(r"[:|/]+")
_LABELLED = re.compile(r"(?P<name>[A-Za-z_]+)[=~-](?P<value>.+)")
_DIGEST = re.compile(r"[0-9a-f]{16,}|[0-9a-fA-F-]{32,36}|[A-Za-z0-9_-]{43,44}=?|\d{9,}")
_CACHE = re.compile(
    r"(?:^|[^a-z])(?:llm_?cache|gptcache|cache|prompts?|responses?|answers?|completions?|"
    r"embeddings?|litellm|semantic)(?:[^a-z]|$)",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"(?P<locale>[a-z]{2}(?:[-_][A-Za-z]{2,4})?)|(?P<device>mobile|desktop|tablet|web|ios|android|"
    r"phone|pc|app)|(?P<hour>h?(?:[01]?\d|2[0-3]))|(?P<arm>[ab]|control|treatment|arm\w*|variant\w*)"
    r"|(?P<region>(?:eu|us|ap|sa|af|me|ca|cn)-[a-z0-9-]+|emea|apac|amer)|(?P<user>u(?:ser)?[-_]?\d\w*)",
)


@dataclass(frozen=True)
class Stored:
    """One cached answer.

    Attributes:
        key: Its key; never shown.
        content: Digest of question and answer; None: they can't be told.
        asked: Digest of its question in canonical text; None: it does not hold it.
        fields: Its further fields, such as the tags of an index.
    """

    key: str
    content: str | None
    asked: str | None
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def tenants(self) -> set[str]:
        """What names a tenant in its fields, labelled parts of its key, or our own form of key."""
        if (own := take_apart(self.key)) is not None:
            return {own.tenant}
        named = {value for name, value in self.fields.items() if _TENANT.fullmatch(name.lower())}
        labels = [_LABELLED.fullmatch(part) for part in self.parts]
        named |= {m["value"] for m in labels if m and _TENANT.fullmatch(m["name"].lower())}
        # `tenant:acme:...`: the label is a part of its own.
        named |= {
            value
            for name, value in zip(self.parts, self.parts[1:], strict=False)
            if _TENANT.fullmatch(name.lower())
        }
        return named

    @property
    def parts(self) -> list[str]:
        """The parts of its key."""
        return _SEPARATOR.split(self.key)

    @property
    def free(self) -> list[str]:
        """The parts of its key that are no digest and say nothing that a dimension could say."""
        return [
            part
            for part in self.parts
            if not _DIGEST.fullmatch(part) and not _VALUE.fullmatch(part.lower())
        ]

    def dimensions(self) -> dict[str, str]:
        """Return the dimensions in its key and fields, by name."""
        found = {n: v for n, v in self.fields.items() if _DIMENSION.fullmatch(n.lower())}
        for part in self.parts:
            if (label := _LABELLED.fullmatch(part)) and _DIMENSION.fullmatch(label["name"].lower()):
                found[label["name"]] = label["value"]
            elif (value := _VALUE.fullmatch(part.lower())) and take_apart(self.key) is None:
                found[str(value.lastgroup)] = part
        return found


@dataclass(frozen=True)
class Index:
    """A search index: its name, the prefixes of the keys in it, the names of its fields."""

    name: str
    prefixes: tuple[str, ...]
    fields: tuple[str, ...]

    def holds(self, key: str) -> bool:
        """Say whether a key is in it."""
        return any(key.startswith(prefix) for prefix in self.prefixes)


@dataclass(frozen=True)
class Kept:
    """What a Redis holds.

    Attributes:
        values: Cached answers.
        indexes: Search indexes.
        keys: Keys looked at, of any kind.
        whole: Whether these were all.
    """

    values: tuple[Stored, ...]
    indexes: tuple[Index, ...]
    keys: int
    whole: bool

    def copies(self) -> list[list[Stored]]:
        """Return what is kept more than once: equal answers to one question of one tenant."""
        found: dict[tuple[Any, ...], list[Stored]] = defaultdict(list)
        for one in self.values:
            if one.content is not None:
                found[one.content, *sorted(one.tenants), None, *one.free].append(one)
        return [same for same in found.values() if len(same) > 1]


def differing(same: Sequence[Stored]) -> set[str]:
    """Return the names of the dimensions in which the keys or fields of one answer differ."""
    seen: dict[str, set[str]] = defaultdict(set)
    held = [one.dimensions() for one in same]
    for name in {name for one in held for name in one}:
        seen[name] = {one.get(name, "") for one in held}
    return {name for name, values in seen.items() if len(values) > 1}


async def look(store: RedisStore) -> Kept:
    """Return what a Redis holds of cached answers and indexes.

    Raises:
        StoreUnavailable: No answer, or it refuses a command that reads.
    """
    keys, whole = await _keys(store)
    kinds = await store.run([["TYPE", key] for key in keys])
    hashes = [k for k, kind in zip(keys, kinds, strict=True) if kind == b"hash"]
    texts = [k for k, kind in zip(keys, kinds, strict=True) if kind == b"string"]
    values = [*await _of_hashes(store, hashes), *await _of_texts(store, texts)]
    indexes = await _indexes(store) if await store.has_search() else ()
    return Kept(tuple(values), tuple(indexes), len(keys), whole)


async def _keys(store: RedisStore) -> tuple[list[bytes], bool]:
    found: dict[bytes, None] = {}
    cursor: Any = 0
    while True:
        [(cursor, page)] = await store.run([["SCAN", cursor, "COUNT", _PAGE]])
        found |= dict.fromkeys(page)
        if int(cursor) == 0 or len(found) >= MOST_KEYS:
            return list(found)[:MOST_KEYS], int(cursor) == 0


async def _of_hashes(store: RedisStore, keys: Sequence[bytes]) -> list[Stored]:
    names = await store.run([["HKEYS", key] for key in keys])
    wanted = [
        [name for name in fields if b"vector" not in name and b"embedding" not in name]
        if {name.decode(errors="replace") for name in fields} & _ANSWERED
        else []
        for fields in names
    ]
    asked = [(key, fields) for key, fields in zip(keys, wanted, strict=True) if fields]
    replies = await store.run([["HMGET", key, *fields] for key, fields in asked])
    found = []
    for (key, fields), reply in zip(asked, replies, strict=True):
        texts = {_text(n): _text(v) for n, v in zip(fields, reply, strict=True) if v is not None}
        found.append(_stored(_text(key), texts))
    return found


async def _of_texts(store: RedisStore, keys: Sequence[bytes]) -> list[Stored]:
    likely = [key for key in keys if take_apart(_text(key)) is None and _likely(_text(key))]
    replies = await store.run([["GETRANGE", key, 0, _LONGEST] for key in likely])
    found = []
    for key, reply in zip(likely, replies, strict=True):
        if (texts := _json_texts(reply)) is not None:
            found.append(_stored(_text(key), texts))
    return found


def _likely(key: str) -> bool:
    return bool(_CACHE.search(key)) or bool(_DIGEST.fullmatch(_SEPARATOR.split(key)[-1]))


def _json_texts(raw: bytes) -> dict[str, str] | None:
    """Return the texts of a value that is JSON with an answer in it; None: it is something else."""
    try:
        value = json.loads(raw)
        if isinstance(value, dict) and isinstance(value.get("response"), str):
            inner = value["response"]
            value |= {"response": _answer(json.loads(inner)) or inner} if inner[:1] == "{" else {}
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    value |= {"response": answer} if (answer := _answer(value)) else {}
    if not value.keys() & _ANSWERED:
        return None
    return {str(name): str(text) for name, text in value.items() if not isinstance(text, dict)}


def _answer(value: Any) -> str | None:
    """Return the text of an answer in the OpenAI shape."""
    try:
        return str(value["choices"][0]["message"]["content"])
    except (KeyError, IndexError, TypeError):
        return None


def _stored(key: str, texts: Mapping[str, str]) -> Stored:
    same = {name: text for name, text in texts.items() if name in _SAME}
    question = next((texts[name] for name in sorted(_MEANT) if texts.get(name)), None)
    others = {n: v for n, v in texts.items() if n not in _SAME and n not in _OWN_BUSINESS}
    return Stored(
        key,
        None if question is None else _digest(json.dumps(same, sort_keys=True)),
        None if question is None else asked(question),
        others,
    )


def asked(question: str) -> str:
    """Return the digest by which questions in a Redis and in a log are compared."""
    return _digest(canonical_text(question))


async def _indexes(store: RedisStore) -> list[Index]:
    [names] = await store.run([["FT._LIST"]])
    told = await store.run([["FT.INFO", name] for name in names])
    return [_index(_text(name), info) for name, info in zip(names, told, strict=True)]


def _index(name: str, info: Sequence[Any]) -> Index:
    facts = dict(_pairs(info))
    definition = dict(_pairs(facts.get("index_definition", ())))
    fields = [dict(_pairs(one)).get("identifier", b"") for one in facts.get("attributes", ())]
    prefixes = tuple(_text(prefix) for prefix in definition.get("prefixes", ()))
    return Index(name, prefixes, tuple(_text(one) for one in fields))


def _pairs(flat: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for name, value in zip(flat[::2], flat[1::2], strict=False):
        yield _text(name), value


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
