"""The reader for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeVar

from warmup_lib.bypass import Headers
from warmup_lib.keys import Request
from warmup_lib.observe.instruments import current
from warmup_lib.reader.asked import LONG, Asked, asked_of, size_of
from warmup_lib.reader.cache import Cache
from warmup_lib.reader.flight import computing, flying, made_of, refuse_own, storing
from warmup_lib.reader.found import Computed, Found
from warmup_lib.reader.keep import fitting
from warmup_lib.reader.look import looking
from warmup_lib.reader.steps import Computing, Pause, Step, Steps, tried
from warmup_lib.reader.wire import AsyncWire

_T = TypeVar("_T")
Compute = Callable[[], Awaitable[Computed | str]]
"""Makes an answer; what it raises reaches everybody who waits for it."""


class _Flight(NamedTuple):
    """What equal requests share: one look, and what it leads to."""

    looked: asyncio.Future[Found]
    landed: asyncio.Future[Found]


class Reader:
    """Finds what is warm for a request, and stores what was computed for one.

    A fault of the cache is never raised: it is a miss, with the fault in its evidence. A request
    for which no key can be built (its tenant is empty, say) is an `InputDataError` everywhere.
    Each event loop that uses a reader has connections of its own, and closes them before it ends.

    Args:
        cache: Where to look. Nothing is sent before the first call.
    """

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._wire = AsyncWire(cache.url, cache.timeout_s)
        self._flights: dict[tuple[Any, ...], _Flight] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of this event loop."""
        await self._wire.close()

    async def lookup(
        self,
        request: Request,
        *,
        headers: Headers | None = None,
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
        return await self._look(await self._asked(request, headers, user_segment, retrieves))

    async def get_or_compute(
        self,
        request: Request,
        compute: Compute,
        *,
        headers: Headers | None = None,
        user_segment: str | None = None,
        retrieves: bool = False,
    ) -> Found:
        """Return what the caches have for a request, or compute, store and return its answer.

        Equal requests at one time share one look and one computation, in this event loop through a
        task that none of them can cancel, and beyond it through a lock on the Redis. A request
        that told the caches to stand aside computes for itself and stores nothing.

        Args:
            request: The request.
            compute: Makes the answer.
            headers: As in `lookup`.
            user_segment: As in `lookup`.
            retrieves: As in `lookup`.

        Raises:
            InputDataError: No key can be built for it.
            RuntimeError: `compute` asks for the very answer that it is to compute.
        """
        asked = await self._asked(request, headers, user_segment, retrieves)
        if asked.bypass is not None:
            found = await self._look(asked)
            computed = made_of(await compute())
            return replace(found, answer=computed.answer, computed=computed)
        refuse_own(asked)
        # Not the answer's key alone: a request in another segment looks for another vector.
        flight_id = (asyncio.get_running_loop(), asked.answer_key, retrieves, user_segment)
        flight = self._flights.get(flight_id)
        if flight is None:
            return await asyncio.shield(self._depart(flight_id, asked, compute).landed)
        scope, over = self.cache.keys.scope(request.tenant), flight.looked.done()
        with current().lookup(scope, timed=not over) as told:
            found = await asyncio.shield(flight.looked)
            told.evidence, told.served = found.evidence, found.served
        found = await asyncio.shield(flight.landed)
        return replace(found, joined=not found.hit)

    async def store(self, request: Request, answer: str, vector: bytes | None = None) -> bool:
        """Store an answer for the cache's lifetime; return whether it was stored.

        Args:
            request: The request.
            answer: Its answer; an empty one is not stored.
            vector: The prompt's vector, as `Found.vector`; None: only equal requests find it.

        Raises:
            InputDataError: No key can be built for it, or the vector has another length.
        """
        asked = await self._asked(request)
        return await self._drive(storing(asked, self.cache, answer, fitting(self.cache, vector)))

    async def _asked(self, request: Request, *more: Any) -> Asked:
        if size_of(request) <= LONG:
            return asked_of(self.cache, request, *more)
        return await asyncio.to_thread(asked_of, self.cache, request, *more)

    async def _look(self, asked: Asked) -> Found:
        with current().lookup(self.cache.keys.scope(asked.request.tenant)) as told:
            found = await self._drive(looking(asked, self.cache, lambda: self._wire.epoch))
            told.evidence, told.served = found.evidence, found.served
        return found

    def _depart(self, flight_id: tuple[Any, ...], asked: Asked, compute: Compute) -> _Flight:
        looked = asyncio.ensure_future(self._look(asked))
        landed = asyncio.ensure_future(self._fly(asked, compute, looked))
        self._flights[flight_id] = flight = _Flight(looked, landed)
        landed.add_done_callback(lambda done: self._landed(flight_id, done))
        return flight

    def _landed(self, flight_id: tuple[Any, ...], landed: asyncio.Future[Found]) -> None:
        del self._flights[flight_id]
        if not landed.cancelled():
            landed.exception()  # it was told to whoever still waits

    async def _fly(self, asked: Asked, compute: Compute, looked: asyncio.Future[Found]) -> Found:
        async def made() -> Computed | str:
            with computing(asked):
                return await compute()

        found = await looked
        return found if found.hit else await self._drive(flying(asked, self.cache, found), made)

    async def _drive(self, steps: Steps[_T], compute: Compute | None = None) -> _T:
        reply: Any = None
        try:
            while True:
                reply = await self._answer(steps.send(reply), compute)
        except StopIteration as end:
            found: _T = end.value
            return found

    async def _answer(self, step: Step, compute: Compute | None) -> Any:
        if isinstance(step, Sequence):
            return await self._wire.ask(step)
        if isinstance(step, Pause):
            return await asyncio.sleep(step.s)
        if isinstance(step, Computing):
            return await _caught(compute)
        return await asyncio.to_thread(tried, step)


async def _caught(compute: Compute | None) -> Any:
    """Return what `compute` gives or raises: the lock is given back before anybody hears of it."""
    assert compute is not None
    try:
        return await compute()
    except BaseException as error:
        return error
