"""A lookup before anything is sent: the request, its digests, and whether to look at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warmup_lib.bypass import Headers, by_header, by_parameter, joined
from warmup_lib.evidence import Bypass
from warmup_lib.keys import Identity, Request
from warmup_lib.reader.cache import Cache

LONG = 10_000
"""From this size on the keys of a request are made off the event loop, which others wait for."""


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


def asked_of(
    cache: Cache,
    request: Request,
    headers: Headers | None = None,
    user_segment: str | None = None,
    retrieves: bool = False,
) -> Asked:
    """Return a lookup with its keys.

    Raises:
        InputDataError: No key can be built for the request.
    """
    identity = cache.keys.identity(request)
    said = joined(headers or {})
    bypass: Bypass | None = None
    if by_header(said.get("cache-control"), said.get("pragma")):
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


def size_of(request: Request) -> int:
    """Return about how many characters a request has that are new with each one."""
    said = (one.get("content") for one in request.history or () if isinstance(one, Mapping))
    return len(request.prompt) + sum(len(text) for text in said if isinstance(text, str))
