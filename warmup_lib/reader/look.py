"""How a request is looked up, layer by layer; without input or output of its own.

`looking` yields what it needs, a round trip or a vector, and is sent the replies: the clients of
asyncio and of threads drive the same one. A reply that is an exception is a fault of the cache and
becomes evidence; none is raised.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from redis.exceptions import ResponseError

from warmup_lib import places as at
from warmup_lib.bypass import by_header, by_parameter
from warmup_lib.evidence import Bypass, Evidence, Looked
from warmup_lib.guard import tag
from warmup_lib.keys import Identity, Request, embedding_text
from warmup_lib.places import NEIGHBOURS, ROUNDING, owner
from warmup_lib.reader.cache import Cache
from warmup_lib.reader.found import Found
from warmup_lib.search import Command, Near, Point, near_in, search

Step = Sequence[Command] | str
"""A round trip, or a text that needs its vector."""

Steps = Generator[Step, Any, Found]

_ANSWER = ("response", "metadata")
_NO_INDEX = ("no such index", "index not found")
_NO_SEARCH = "unknown command"


@dataclass(frozen=True)
class Asked:
    """One lookup.

    Attributes:
        request: The request.
        identity: Its digests.
        user_segment: Segment of the user; None: none is looked for.
        retrieves: Whether it would retrieve chunks, so that a ready list of them helps.
        bypass: What tells the caches to stand aside; None: nothing does.
        answer_key: Key of the answer of an equal request.
    """

    request: Request
    identity: Identity
    user_segment: str | None
    retrieves: bool
    bypass: Bypass | None
    answer_key: str


@dataclass
class _Seen:
    """What was seen so far."""

    epoch: Callable[[], str | None]
    looked: list[Looked] = field(default_factory=list)
    vector: bytes | None = None
    chunk_ids: tuple[str, ...] | None = None
    head: bool = False
    segment: bytes | None = None

    def note(self, layer: str, found: Any, key: str, **more: Any) -> Looked:
        """Put one look in."""
        look = Looked(layer, found, key, **more)
        self.looked.append(look)
        return look


def asked_of(
    cache: Cache,
    request: Request,
    headers: Mapping[str, str] | None = None,
    user_segment: str | None = None,
    retrieves: bool = False,
) -> Asked:
    """Return a lookup with its keys.

    Raises:
        InputDataError: No key can be built for the request.
    """
    identity = cache.keys.identity(request)
    held = {name.casefold(): value for name, value in (headers or {}).items()}
    bypass: Bypass | None = None
    if by_header(held.get("cache-control"), held.get("pragma")):
        bypass = "header"
    elif by_parameter(request.params):
        bypass = "parameter"
    return Asked(
        request,
        identity,
        user_segment,
        retrieves,
        bypass,
        cache.places.answer(request, identity.response),
    )


def looking(asked: Asked, cache: Cache, epoch: Callable[[], str | None]) -> Steps:
    """Look a request up: what equal requests left in one round trip, then what similar ones did.

    Args:
        asked: The request.
        cache: Where to look.
        epoch: Tells the identity of the Redis's process, once it was asked.
    """
    seen = _Seen(epoch)
    if asked.bypass is not None:
        return _result(asked, cache, seen)
    served = yield from _equal(asked, cache, seen)
    if served is None:
        served = yield from _similar(asked, cache, seen)
    return served or _result(asked, cache, seen)


def _result(asked: Asked, cache: Cache, seen: _Seen, **more: Any) -> Found:
    similar = any(look.similarity is not None for look in seen.looked)
    evidence = Evidence(
        looked=tuple(seen.looked),
        bypass=asked.bypass,
        secret_id=cache.keys.secret_id,
        encoder=cache.encoder if similar else None,
        template=cache.keys.template or None,
        redis_epoch=seen.epoch(),
    )
    return Found(
        hit="answer" in more,
        evidence=evidence,
        vector=seen.vector,
        chunk_ids=seen.chunk_ids,
        head=seen.head,
        segment=seen.segment,
        **more,
    )


# -- what equal requests left --------------------------------------------------------------------


def _equal(asked: Asked, cache: Cache, seen: _Seen) -> Generator[Step, Any, Found | None]:
    """Read every entry that has a key of its own, in one round trip."""
    request, identity, places = asked.request, asked.identity, cache.places
    answer_key = asked.answer_key
    vector_key = places.embedding(request.tenant, identity.text)
    commands: list[Command] = [["GET", vector_key], ["HMGET", answer_key, *_ANSWER]]
    tiers: list[tuple[str, str, Callable[[_Seen, list[Any]], None]]] = []
    if asked.retrieves:
        key = places.list_of(request.tenant, identity.text)
        tiers.append((at.LISTS, key, _take_list))
        commands.append(["HMGET", key, "chunk_ids"])
    if request.system_prompt:
        key = places.system_prompt(request, identity.head)
        tiers.append((at.SYSTEM_PROMPTS, key, _take_head))
        commands.append(["HMGET", key, "sha256"])
    if asked.user_segment and asked.user_segment.strip():
        digest = places.keys.segment_digest(asked.user_segment)
        key = places.segment(request.tenant, digest)
        tiers.append((at.SEGMENTS, key, partial(_take_segment, dimension=cache.dimension)))
        commands.append(["HMGET", key, "vector"])
    replies = yield commands
    _take_vector(seen, vector_key, replies[0], cache.dimension, len(request.prompt))
    served, fields = _take_answer(seen, answer_key, replies[1], len(request.prompt))
    for (layer, key, take), reply in zip(tiers, replies[2:], strict=True):
        _take(seen, layer, key, reply, take)
    if served is None:
        return None
    return _result(asked, cache, seen, served=served, match="exact", **fields)


def _take_vector(seen: _Seen, key: str, reply: Any, dimension: int, characters: int) -> None:
    about: dict[str, Any] = {"characters": characters}
    if isinstance(reply, Exception):
        seen.note(at.EMBEDDINGS, "error", key, error=type(reply).__name__, **about)
    elif reply is None:
        seen.note(at.EMBEDDINGS, "absent", key, **about)
    elif len(reply) != 4 * dimension:
        seen.note(at.EMBEDDINGS, "error", key, error="ValueError", **about)
    else:
        seen.vector = reply
        seen.note(at.EMBEDDINGS, "hit", key, **about)


def _take_answer(
    seen: _Seen, key: str, reply: Any, characters: int
) -> tuple[Looked | None, dict[str, Any]]:
    about: dict[str, Any] = {"characters": characters}
    if isinstance(reply, Exception):
        seen.note(at.RESPONSES, "error", key, error=type(reply).__name__, **about)
        return None, {}
    if reply[0] is None:
        seen.note(at.RESPONSES, "absent", key, **about)
        return None, {}
    held = {name: value for name, value in zip(_ANSWER, reply, strict=True) if value is not None}
    try:
        fields = {"answer": held["response"].decode(), "item_id": owner(held)}
    except ValueError as error:
        seen.note(at.RESPONSES, "error", key, error=type(error).__name__, **about)
        return None, {}
    return seen.note(at.RESPONSES, "hit", key, **about), fields


def _take(
    seen: _Seen, layer: str, key: str, reply: Any, take: Callable[[_Seen, list[Any]], None]
) -> None:
    if isinstance(reply, Exception):
        seen.note(layer, "error", key, error=type(reply).__name__)
        return
    if reply[0] is None:
        seen.note(layer, "absent", key)
        return
    try:
        take(seen, reply)
    except ValueError as error:
        seen.note(layer, "error", key, error=type(error).__name__)
    else:
        seen.note(layer, "hit", key)


def _take_head(seen: _Seen, _: list[Any]) -> None:
    seen.head = True


def _take_segment(seen: _Seen, reply: list[Any], dimension: int) -> None:
    if len(reply[0]) != 4 * dimension:
        raise ValueError("no vector of this encoder")
    seen.segment = reply[0]


def _take_list(seen: _Seen, reply: list[Any]) -> None:
    seen.chunk_ids = _chunk_ids(reply[0])


def _chunk_ids(held: bytes) -> tuple[str, ...]:
    found = json.loads(held)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("no list of chunk ids")
    return tuple(found)


# -- what similar requests left ------------------------------------------------------------------


def _similar(asked: Asked, cache: Cache, seen: _Seen) -> Generator[Step, Any, Found | None]:
    """Search with the prompt's vector: the one stored, else a fresh one."""
    places, tenant = cache.places, asked.request.tenant
    index = places.answers(tenant)
    if any(look.found == "error" and look.layer == at.RESPONSES for look in seen.looked):
        return None  # the Redis is out of reach, or the entry is damaged: the model answers
    if seen.vector is None:
        yield from _encode(asked, cache, seen, index)
    if seen.vector is None:
        return None
    shared = places.shared(asked.identity.context, asked.request.adapter)
    tags = {"context": shared, "signature": tag(asked.request.prompt)}
    lists = places.lists(tenant)
    commands: list[Command] = [
        ["HMGET", places.threshold(tenant), "threshold"],
        search(Point(index, seen.vector, tags), NEIGHBOURS, _ANSWER),
    ]
    searches_lists = asked.retrieves and seen.chunk_ids is None
    if searches_lists:
        commands.append(search(Point(lists, seen.vector), 1, ("chunk_ids",)))
    replies = yield commands
    if searches_lists:
        _take_near_list(seen, lists, replies[2])
    threshold = _threshold(replies[0], cache.threshold)
    near = _near(seen, at.RESPONSES, replies[1], index)
    if near is None:
        return None
    for one in near:
        if one.similarity >= threshold - ROUNDING and (fields := _fields(one)):
            about = {"nearest": one.key, "similarity": one.similarity, "threshold": threshold}
            served = seen.note(at.RESPONSES, "hit", index, **about)
            told = {"match": "semantic", "similarity": one.similarity, **fields}
            return _result(asked, cache, seen, served=served, **told)
    # Only a miss pays for knowing why: the nearest entry of the context, whatever it says.
    [reply] = yield [search(Point(index, seen.vector, {"context": shared}), 1, ("signature",))]
    _note_refused(seen, index, reply, threshold)
    return None


def _encode(asked: Asked, cache: Cache, seen: _Seen, index: str) -> Generator[Step, Any, None]:
    if cache.encode is None:
        return
    made = yield embedding_text(asked.request.prompt)
    if isinstance(made, Exception):
        seen.note(at.RESPONSES, "error", index, error=type(made).__name__)
    elif made is not None:
        seen.vector = struct.pack(f"<{len(made)}f", *made)


def _note_refused(seen: _Seen, index: str, reply: Any, threshold: float) -> None:
    near = _near(seen, at.RESPONSES, reply, index)
    if near is None:
        return
    if not near:
        seen.note(at.RESPONSES, "absent", index, threshold=threshold)
        return
    [nearest] = near[:1]
    close = nearest.similarity >= threshold - ROUNDING
    seen.note(
        at.RESPONSES,
        "guard_refused" if close else "below_threshold",
        index,
        nearest=nearest.key,
        similarity=nearest.similarity,
        threshold=threshold,
    )


def _near(seen: _Seen, layer: str, reply: Any, index: str) -> list[Near] | None:
    """Return what a search found; None: it failed, which is noted unless there is no search."""
    if isinstance(reply, ResponseError):
        said = str(reply).lower()
        if _NO_SEARCH in said:
            return None
        if any(words in said for words in _NO_INDEX):
            return []
    if isinstance(reply, Exception):
        seen.note(layer, "error", index, error=type(reply).__name__)
        return None
    try:
        return near_in(reply, index)
    except (ValueError, TypeError, AttributeError) as error:
        seen.note(layer, "error", index, error=type(error).__name__)
        return None


def _take_near_list(seen: _Seen, index: str, reply: Any) -> None:
    near = _near(seen, at.LISTS, reply, index)
    if near is None:
        return
    if not near:
        seen.note(at.LISTS, "absent", index)
        return
    about = {"nearest": near[0].key, "similarity": near[0].similarity}
    try:
        seen.chunk_ids = _chunk_ids(near[0].fields.get("chunk_ids", b""))
    except ValueError as error:
        seen.note(at.LISTS, "error", index, error=type(error).__name__, **about)
    else:
        seen.note(at.LISTS, "hit", index, **about)


def _fields(near: Near) -> dict[str, Any] | None:
    """Return what a near answer says; None: it is damaged."""
    try:
        return {"answer": near.fields["response"].decode(), "item_id": owner(near.fields)}
    except (KeyError, ValueError):
        return None


def _threshold(reply: Any, default: float) -> float:
    """Return the tenant's calibrated threshold; the default where there is none to be read.

    One above 1 says that no similar question may be served.
    """
    try:
        calibrated = float(reply[0])
    except (TypeError, ValueError):
        return default
    return calibrated if 0 < calibrated < math.inf else default
