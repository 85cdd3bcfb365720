"""How a missing answer is computed once and stored, as steps that both clients take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex

from warmup_lib.reader.asked import Asked
from warmup_lib.reader.cache import Cache
from warmup_lib.reader.found import Computed, Found
from warmup_lib.reader.keep import awaited, keeping, kept, locking, unlocking, waiting
from warmup_lib.reader.seen import away
from warmup_lib.reader.steps import Computing, Pause, Steps, worked
from warmup_lib.search import Command

_POLL_S = 0.05
"""Between two looks for an answer that another process computes."""


def flying(asked: Asked, cache: Cache, found: Found) -> Steps[Found]:
    """Compute and store what a lookup missed, unless another process does so already.

    A Redis that did not answer the lookup, or does not the lock, is asked for nothing more: each
    question would cost its whole time limit.

    Args:
        asked: The request.
        cache: Where the answer goes.
        found: What the lookup gave.
    """
    lock_key, word = cache.places.flight(asked.request, asked.identity.response), token_hex(8)
    reached, ours = found.reached, False
    if reached and cache.lock_s:
        [reply] = yield [locking(lock_key, word, cache.lock_s)]
        reached = not away(reply)
        ours = reply is not None and not isinstance(reply, Exception)
        if reply is None:
            answer = yield from _awaiting(asked.answer_key, lock_key, cache.lock_s)
            if answer is not None:
                return replace(found, answer=answer, joined=True)
    made = yield Computing()
    last = [unlocking(lock_key, word)] if ours else []
    if isinstance(made, BaseException):
        if last:
            yield last
        raise made
    computed = made_of(made)
    stored = False
    if reached and computed.keep:
        stored = yield from storing(asked, cache, computed.answer, found.vector, last)
    elif last:
        yield last
    return replace(found, answer=computed.answer, computed=computed, stored=stored)


def made_of(made: Computed | str) -> Computed:
    """Return what `compute` gave in one form."""
    return Computed(made) if isinstance(made, str) else made


def storing(
    asked: Asked, cache: Cache, answer: str, vector: bytes | None, last: Sequence[Command] = ()
) -> Steps[bool]:
    """Store an answer; return whether it was stored.

    Args:
        asked: The request.
        cache: Where it goes.
        answer: The answer; an empty one is not stored, nor one that no UTF-8 holds.
        vector: The prompt's vector, where it is known.
        last: Commands that go with it, at the end.
    """
    if not (answer and _spelled(asked.request.prompt) and _spelled(answer)):
        if last:
            yield last
        return False
    work = partial(keeping, asked, cache, answer, vector, time.time())
    commands = yield from worked(work, asked.request.prompt)
    replies = yield [*commands, *last]
    return kept(replies[: len(commands)])


def _spelled(text: str) -> bool:
    """Say whether a text can be sent: JSON can spell half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _awaiting(answer_key: str, lock_key: str, lock_s: float) -> Steps[str | None]:
    """Return the answer that another process computes; None: it gave up, or takes too long."""
    until = time.monotonic() + lock_s
    while time.monotonic() < until:
        answer, computing = awaited((yield waiting(answer_key, lock_key)))
        if answer is not None or not computing:
            return answer
        yield Pause(_POLL_S)
    return None


# -- answers that are computed here --------------------------------------------------------------


@dataclass
class _Own:
    """An answer whose computation has called what runs now."""

    answer_key: str
    over: bool = False


_own: ContextVar[tuple[_Own, ...]] = ContextVar("warmup_computing", default=())


@contextmanager
def computing(asked: Asked) -> Iterator[None]:
    """Remember, for whatever is called meanwhile, which answer is computed here."""
    own = _Own(asked.answer_key)
    before = _own.set((*_own.get(), own))
    try:
        yield
    finally:
        own.over = True  # a task that it left behind still has this context
        _own.reset(before)


def refuse_own(asked: Asked) -> None:
    """Refuse a computation that waits for itself, which would never end.

    Raises:
        RuntimeError: It asks for the very answer that it computes.
    """
    if any(own.answer_key == asked.answer_key and not own.over for own in _own.get()):
        raise RuntimeError("compute asks the reader for the very answer that it is to compute")
