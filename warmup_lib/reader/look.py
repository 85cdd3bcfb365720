"""How a request is looked up, layer by layer; without input or output of its own.

`looking` yields what it needs and is sent the replies: the clients of asyncio and of threads drive
the same one. A reply that is an exception is a fault of the cache and becomes evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from warmup_lib import places as at
from warmup_lib.evidence import Evidence
from warmup_lib.guard import tag
from warmup_lib.keys import embedding_text
from warmup_lib.places import NEIGHBOURS, ROUNDING
from warmup_lib.reader.asked import Asked
from warmup_lib.reader.cache import Cache
from warmup_lib.reader.found import Found
from warmup_lib.reader.seen import ANSWER, Seen, threshold_in, told_near
from warmup_lib.reader.steps import Steps, worked
from warmup_lib.search import Command, Point, search


def looking(asked: Asked, cache: Cache, epoch: Callable[[], str | None]) -> Steps[Found]:
    """Look a request up: what equal requests left in one round trip, then what similar ones did.

    Args:
        asked: The request.
        cache: Where to look.
        epoch: Tells the identity of the Redis's process, once it was asked.
    """
    seen = Seen(epoch, cache.dimension)
    if asked.bypass is not None:
        return _result(asked, cache, seen)
    served = yield from _equal(asked, cache, seen)
    if served is None:
        served = yield from _similar(asked, cache, seen)
    return served or _result(asked, cache, seen)


def _result(asked: Asked, cache: Cache, seen: Seen, **more: Any) -> Found:
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
        reached=seen.reached,
        **more,
    )


def _equal(asked: Asked, cache: Cache, seen: Seen) -> Steps[Found | None]:
    """Read every entry that has a key of its own, in one round trip."""
    request, identity, places = asked.request, asked.identity, cache.places
    vector_key = places.embedding(request.tenant, identity.text)
    commands: list[Command] = [["GET", vector_key], ["HMGET", asked.answer_key, *ANSWER]]
    tiers: list[tuple[str, str, Callable[[Any], bool]]] = []
    if asked.retrieves:
        key = places.list_of(request.tenant, identity.text)
        tiers.append((at.LISTS, key, seen.read_list))
        commands.append(["HMGET", key, "chunk_ids"])
    if request.system_prompt:
        key = places.system_prompt(request, identity.head)
        tiers.append((at.SYSTEM_PROMPTS, key, seen.read_head))
        commands.append(["HMGET", key, "sha256"])
    if asked.user_segment and asked.user_segment.strip():
        digest = places.keys.segment_digest(asked.user_segment)
        key = places.segment(request.tenant, digest)
        tiers.append((at.SEGMENTS, key, seen.read_segment))
        commands.append(["HMGET", key, "vector"])
    replies = yield commands
    about = {"characters": len(request.prompt)}
    seen.take(at.EMBEDDINGS, vector_key, replies[0], seen.read_vector, **about)
    served = seen.take(at.RESPONSES, asked.answer_key, replies[1], seen.read_answer, **about)
    for (layer, key, read), reply in zip(tiers, replies[2:], strict=True):
        seen.take(layer, key, reply, read)
    if served is None:
        return None
    return _result(asked, cache, seen, served=served, match="exact", **seen.answer)


def _similar(asked: Asked, cache: Cache, seen: Seen) -> Steps[Found | None]:
    """Search with the prompt's vector: the one stored, else a fresh one."""
    places, request = cache.places, asked.request
    index = places.answers(request.tenant)
    if any(look.found == "error" and look.layer == at.RESPONSES for look in seen.looked):
        return None  # the Redis is out of reach, or the entry is damaged: the model answers
    if seen.vector is None and cache.encode is not None:
        made = yield partial(_encoded, cache.encode, request.prompt)
        seen.encoded(at.RESPONSES, index, made)
    if seen.vector is None:
        return None
    signature = yield from worked(partial(tag, request.prompt), request.prompt)
    shared = places.shared(asked.identity.context, request.adapter)
    tags = {"context": shared, "signature": signature}
    lists = places.lists(request.tenant)
    commands: list[Command] = [
        ["HMGET", places.threshold(request.tenant), "threshold"],
        search(Point(index, seen.vector, tags), NEIGHBOURS, ANSWER),
    ]
    searches_lists = asked.retrieves and seen.chunk_ids is None
    if searches_lists:
        commands.append(search(Point(lists, seen.vector), 1, ("chunk_ids",)))
    replies = yield commands
    if searches_lists:
        _take_near_list(seen, lists, replies[2])
    threshold = threshold_in(replies[0], cache.threshold)
    near = seen.near(at.RESPONSES, index, replies[1])
    if near is None:
        return None
    for one in near:
        if one.similarity >= threshold - ROUNDING and (fields := told_near(one)):
            about = {"nearest": one.key, "similarity": one.similarity, "threshold": threshold}
            served = seen.note(at.RESPONSES, "hit", index, **about)
            told = {"match": "semantic", "similarity": one.similarity, **fields}
            return _result(asked, cache, seen, served=served, **told)
    # Only a miss pays for knowing why: the nearest entry of the context, whatever it says.
    [reply] = yield [search(Point(index, seen.vector, {"context": shared}), 1, ("signature",))]
    _note_refused(seen, index, reply, threshold)
    return None


def _encoded(encode: Callable[[str], Any], prompt: str) -> Any:
    return encode(embedding_text(prompt))


def _note_refused(seen: Seen, index: str, reply: Any, threshold: float) -> None:
    near = seen.near(at.RESPONSES, index, reply)
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


def _take_near_list(seen: Seen, index: str, reply: Any) -> None:
    near = seen.near(at.LISTS, index, reply)
    if near is None:
        return
    if not near:
        seen.note(at.LISTS, "absent", index)
        return
    about = {"nearest": near[0].key, "similarity": near[0].similarity}
    held = [near[0].fields.get("chunk_ids", b"")]
    seen.take(at.LISTS, index, held, seen.read_list, **about)
