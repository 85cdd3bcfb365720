"""What is read of a Redis: the names of its keys, its cached answers, its search indexes.

Nothing is written. Names are looked at up to `MOST_NAMES`, values up to `MOST_KEYS`, and vectors
are left where they are. Texts become digests at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from warmup_lib.doctor.store import DIGEST, SEPARATOR, Index, Kept, Stored, asked, digest
from warmup_lib.keys import take_apart
from warmup_lib.targets.store import RedisStore

MOST_NAMES = 1_000_000
MOST_KEYS = 20_000
"""Keys that look like cached answers, and as many others, whose values are read."""

_PAGE = 2000
_LONGEST = 65_536
_MEANT = frozenset({"prompt", "question", "query", "input", "messages"})
_SPOKEN = frozenset({"response", "answer", "completion"})
_ANSWERED = frozenset({*_SPOKEN, "output", "result"})
"""The last two are words of jobs and of searches, too."""

_SAME = frozenset({*_MEANT, *_ANSWERED, "context", "signature", "model", "llm_string"})
_OWN_BUSINESS = frozenset(
    {"entry_id", "inserted_at", "updated_at", "created_at", "metadata", "item_id", "id", "ttl",
     "timestamp", "_index_name", "key"}
)  # fmt: skip
_OF_MODELS = re.compile(
    r"(?:^|[^a-z])(?:llm|(?:chat)?gpt|prompts?|completions?|embeddings?|litellm|semantic)"
    r"(?:_?cache|[^a-z]|$)",
    re.IGNORECASE,
)
_CACHE = re.compile(r"(?:^|[^a-z])(?:\w*cached?|responses?)(?:[^a-z]|$)", re.IGNORECASE)


async def look(store: RedisStore) -> Kept:
    """Return what a Redis holds of cached answers and indexes.

    Raises:
        StoreUnavailable: No answer, or it refuses a command that reads.
    """
    indexes = await _indexes(store) if await store.has_search() else []
    # An index over everything says nothing of what a key is.
    prefixes = tuple(prefix for index in indexes for prefix in index.prefixes if prefix)
    likely, others, seen, whole = await _keys(store, prefixes)
    keys = [*likely[:MOST_KEYS], *others]
    kinds = await store.run([["TYPE", key] for key in keys])
    hashes = [k for k, kind in zip(keys, kinds, strict=True) if kind == b"hash"]
    texts = [k for k, kind in zip(keys, kinds, strict=True) if kind == b"string"]
    values = [*await _of_hashes(store, hashes, prefixes), *await _of_texts(store, texts)]
    return Kept(tuple(values), tuple(indexes), seen, whole and len(likely) <= MOST_KEYS)


async def _keys(
    store: RedisStore, prefixes: tuple[str, ...]
) -> tuple[list[bytes], list[bytes], int, bool]:
    """Return keys that look like cached answers, some others, how many were seen, if all were."""
    likely: dict[bytes, None] = {}
    others: dict[bytes, None] = {}
    cursor: Any = 0
    seen = 0
    while True:
        [(cursor, page)] = await store.run([["SCAN", cursor, "COUNT", _PAGE]])
        seen += len(page)
        for key in page:
            name = _text(key)
            if name.startswith(prefixes) or take_apart(name) is not None or _likely(name):
                likely[key] = None
            elif len(others) < MOST_KEYS:
                others[key] = None
        if int(cursor) == 0 or seen >= MOST_NAMES:
            return list(likely), list(others), seen, int(cursor) == 0


def _likely(key: str) -> bool:
    return bool(_OF_MODELS.search(key) or _CACHE.search(key)) or bool(
        DIGEST.fullmatch(SEPARATOR.split(key)[-1])
    )


def _is_answer(key: str, names: Iterable[str]) -> bool:
    """Say whether fields are those of a model's cached answer, and not a job's or a form's."""
    held = set(names)
    if _OF_MODELS.search(key):
        return bool(held & _SPOKEN or (held & _MEANT and held & _ANSWERED))
    return bool(held & _MEANT and held & _SPOKEN and _likely(key))


async def _of_hashes(
    store: RedisStore, keys: Sequence[bytes], prefixes: tuple[str, ...]
) -> list[Stored]:
    fields = await store.run([["HKEYS", key] for key in keys])
    wanted = []
    for key, raw in zip(keys, fields, strict=True):
        name, names = _text(key), {_text(field) for field in raw}
        plain = [field for field in raw if not _is_vector(_text(field))]
        found = name.startswith(prefixes) or len(plain) < len(raw)
        if names & _ANSWERED and (found or _is_answer(name, names)):
            wanted.append((key, plain))
    replies = await store.run([["HMGET", key, *plain] for key, plain in wanted])
    return [
        _stored(
            _text(key),
            {_text(n): _text(v) for n, v in zip(plain, reply, strict=True) if v is not None},
        )
        for (key, plain), reply in zip(wanted, replies, strict=True)
    ]


def _is_vector(field: str) -> bool:
    return "vector" in field or "embedding" in field


async def _of_texts(store: RedisStore, keys: Sequence[bytes]) -> list[Stored]:
    likely = [key for key in keys if take_apart(_text(key)) is None and _likely(_text(key))]
    replies = await store.run([["GETRANGE", key, 0, _LONGEST] for key in likely])
    found = []
    for key, reply in zip(likely, replies, strict=True):
        if (texts := _json_texts(_text(key), reply)) is not None:
            found.append(_stored(_text(key), texts))
    return found


def _json_texts(key: str, raw: bytes) -> dict[str, str] | None:
    """Return the texts of a value that is JSON with an answer in it; None: it is something else."""
    value = _json(raw)
    if not isinstance(value, dict):
        return None
    inner = value.get("response")
    nested = _json(inner) if isinstance(inner, str) and inner[:1] == "{" else None
    if (answer := _answer(value) or _answer(nested)) is not None:
        value |= {"response": answer}
    elif not _is_answer(key, value):
        return None
    return {str(name): str(text) for name, text in value.items() if not isinstance(text, dict)}


def _json(text: str | bytes) -> Any:
    """Return a value; None: it is no JSON, or deeper than any answer."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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
        None if question is None else digest(json.dumps(same, sort_keys=True)),
        None if question is None else asked(question),
        others,
    )


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
