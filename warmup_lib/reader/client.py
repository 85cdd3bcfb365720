"""The reader for asyncio, and the one for threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Any, Self

from warmup_lib.keys import Request
from warmup_lib.observe.instruments import current
from warmup_lib.reader.cache import Cache
from warmup_lib.reader.found import Computed, Found
from warmup_lib.reader.keep import awaited, keeping, kept, locking, unlocking, waiting
from warmup_lib.reader.look import Asked, Step, asked_of, looking
from warmup_lib.reader.wire import AsyncWire, SyncWire

_POLL_S = 0.05
"""Between two looks for an answer that another process computes."""

Compute = Callable[[], Awaitable[Computed | str]]
"""Makes an answer; what it raises reaches everybody who waits for it."""


class Reader:
    """Finds what is warm for a request, and stores what was computed for one.

    A fault of the cache is never raised: it is a miss, with the fault in its evidence. A request
    for which no key can be built (its tenant is empty, say) is an `InputDataError` everywhere.

    Args:
        cache: Where to look. Nothing is sent before the first call.
    """

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._wire = AsyncWire(cache.url, cache.timeout_s)
        self._flights: dict[str, asyncio.Future[Found]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def lookup(
        self,
        request: Request,
        *,
        headers: Mapping[str, str] | None = None,
        user_segment: str | None = None,
        retrieves: bool = False,
    ) -> Found:
        """Return what the caches have for a request; what equal ones left takes one round trip.

        Args:
            request: The request.
            headers: Its headers: `cache-control` and `pragma` can tell the caches to stand aside,
                as the parameters `skip_cache`, `disable_cache` and `cache_enabled` can.
            user_segment: Segment of the user, to find its vector.
            retrieves: Whether it would retrieve chunks, to find a ready list of them.

        Raises:
            InputDataError: No key can be built for it.
        """
        asked = asked_of(self.cache, request, headers, user_segment, retrieves)
        return await self._look(asked)

    async def get_or_compute(
        self,
        request: Request,
        compute: Compute,
        *,
        headers: Mapping[str, str] | None = None,
        user_segment: str | None = None,
        retrieves: bool = False,
    ) -> Found:
        """Return what the caches have for a request, or compute, store and return its answer.

        Equal requests at one time share one look and one computation, in this process through a
        task that none of them can cancel, and between processes through a lock on the Redis. A
        request that told the caches to stand aside computes for itself and stores nothing.

        Args:
            request: The request.
            compute: Makes the answer.
            headers: As in `lookup`.
            user_segment: As in `lookup`.
            retrieves: As in `lookup`.

        Raises:
            InputDataError: No key can be built for it.
        """
        asked = asked_of(self.cache, request, headers, user_segment, retrieves)
        if asked.bypass is not None:
            found = await self._look(asked)
            computed = _computed(await compute())
            return replace(found, answer=computed.answer, computed=computed)
        # Not the answer's key alone: a request in another segment looks for another vector.
        flight_id = f"{asked.answer_key} {retrieves} {user_segment}"
        flight = self._flights.get(flight_id)
        if flight is not None:
            found = await asyncio.shield(flight)
            with current().lookup(self.cache.keys.scope(request.tenant)) as told:
                told.evidence, told.served = found.evidence, found.served
            return replace(found, joined=not found.hit)
        flight = asyncio.ensure_future(self._fly(asked, compute))
        self._flights[flight_id] = flight
        flight.add_done_callback(lambda done: self._landed(flight_id, done))
        return await asyncio.shield(flight)

    async def store(self, request: Request, answer: str, vector: bytes | None = None) -> bool:
        """Store an answer for the cache's lifetime; return whether it was stored.

        Args:
            request: The request.
            answer: Its answer.
            vector: The prompt's vector, as `Found.vector`; None: only equal requests find it.

        Raises:
            InputDataError: No key can be built for it.
        """
        return await self._store(asked_of(self.cache, request), answer, vector)

    # -- looking ---------------------------------------------------------------------------------

    async def _look(self, asked: Asked) -> Found:
        with current().lookup(self.cache.keys.scope(asked.request.tenant)) as told:
            steps = looking(asked, self.cache, self._epoch)
            reply: Any = None
            try:
                while True:
                    reply = await self._answer(steps.send(reply))
            except StopIteration as end:
                found: Found = end.value
            told.evidence, told.served = found.evidence, found.served
        return found

    def _epoch(self) -> str | None:
        return self._wire.epoch

    async def _answer(self, step: Step) -> Any:
        if isinstance(step, str):
            return await asyncio.to_thread(_vector, self.cache, step)
        return await self._wire.ask(step)

    # -- computing -------------------------------------------------------------------------------

    async def _fly(self, asked: Asked, compute: Compute) -> Found:
        found = await self._look(asked)
        if found.hit:
            return found
        places = self.cache.places
        lock_key, word = places.flight(asked.request, asked.identity.response), token_hex(8)
        ours = await self._lock(lock_key, word)
        if not ours and (answer := await self._awaited(asked.answer_key, lock_key)) is not None:
            return replace(found, answer=answer, joined=True)
        try:
            computed = _computed(await compute())
            stored = computed.keep and await self._store(asked, computed.answer, found.vector)
        finally:
            if ours:
                await self._wire.ask([unlocking(lock_key, word)])
        return replace(found, answer=computed.answer, computed=computed, stored=stored)

    async def _lock(self, lock_key: str, word: str) -> bool:
        """Take the lock; return whether nobody else has it."""
        if not self.cache.lock_s:
            return True
        [reply] = await self._wire.ask([locking(lock_key, word, self.cache.lock_s)])
        return reply is not None

    async def _awaited(self, answer_key: str, lock_key: str) -> str | None:
        """Return the answer that another process computes; None: it gave up, or takes too long."""
        until = time.monotonic() + self.cache.lock_s
        while time.monotonic() < until:
            answer, computing = awaited(await self._wire.ask(waiting(answer_key, lock_key)))
            if answer is not None or not computing:
                return answer
            await asyncio.sleep(_POLL_S)
        return None

    async def _store(self, asked: Asked, answer: str, vector: bytes | None) -> bool:
        if not answer:
            return False
        commands = keeping(asked, self.cache, answer, vector, time.time())
        return kept(await self._wire.ask(commands))

    def _landed(self, flight_id: str, flight: asyncio.Future[Found]) -> None:
        del self._flights[flight_id]
        if not flight.cancelled():
            flight.exception()  # it was told to whoever still waits


class SyncReader:
    """The same looks for threads.

    Args:
        cache: Where to look. Nothing is sent before the first call.
    """

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._wire = SyncWire(cache.url, cache.timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def lookup(
        self,
        request: Request,
        *,
        headers: Mapping[str, str] | None = None,
        user_segment: str | None = None,
        retrieves: bool = False,
    ) -> Found:
        """Return what the caches have for a request; see `Reader.lookup`.

        Raises:
            InputDataError: No key can be built for it.
        """
        asked = asked_of(self.cache, request, headers, user_segment, retrieves)
        with current().lookup(self.cache.keys.scope(request.tenant)) as told:
            steps = looking(asked, self.cache, self._epoch)
            reply: Any = None
            try:
                while True:
                    reply = self._answer(steps.send(reply))
            except StopIteration as end:
                found: Found = end.value
            told.evidence, told.served = found.evidence, found.served
        return found

    def store(self, request: Request, answer: str, vector: bytes | None = None) -> bool:
        """Store an answer; see `Reader.store`.

        Raises:
            InputDataError: No key can be built for it.
        """
        if not answer:
            return False
        asked = asked_of(self.cache, request)
        return kept(self._wire.ask(keeping(asked, self.cache, answer, vector, time.time())))

    def _epoch(self) -> str | None:
        return self._wire.epoch

    def _answer(self, step: Step) -> Any:
        return _vector(self.cache, step) if isinstance(step, str) else self._wire.ask(step)


def _vector(cache: Cache, text: str) -> Any:
    """Return a text's vector, or why there is none: whatever the encoder raises is a fault."""
    assert cache.encode is not None
    try:
        return cache.encode(text)
    except Exception as error:
        return error


def _computed(made: Computed | str) -> Computed:
    return Computed(made) if isinstance(made, str) else made
