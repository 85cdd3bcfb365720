"""The reader for threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Self, TypeVar

from warmup_lib.bypass import Headers
from warmup_lib.keys import Request
from warmup_lib.observe.instruments import current
from warmup_lib.reader.asked import Asked, asked_of
from warmup_lib.reader.cache import Cache
from warmup_lib.reader.flight import computing, flying, made_of, refuse_own, storing
from warmup_lib.reader.found import Computed, Found
from warmup_lib.reader.keep import fitting
from warmup_lib.reader.look import looking
from warmup_lib.reader.steps import Computing, Pause, Step, Steps, tried
from warmup_lib.reader.wire import SyncWire

_T = TypeVar("_T")


class _Flight:
    """What equal requests share: one look, and what it leads to."""

    def __init__(self) -> None:
        self.looked: Future[Found] = Future()
        self.landed: Future[Found] = Future()

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits."""
        for one in (self.looked, self.landed):
            if not one.done():
                one.set_exception(error)


class SyncReader:
    """The same as `Reader` for threads, which may share one.

    Args:
        cache: Where to look. Nothing is sent before the first call.
    """

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._wire = SyncWire(cache.url, cache.timeout_s)
        self._flights: dict[tuple[Any, ...], _Flight] = {}
        self._turn = threading.Lock()

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
        headers: Headers | None = None,
        user_segment: str | None = None,
        retrieves: bool = False,
    ) -> Found:
        """Return what the caches have for a request; see `Reader.lookup`.

        Raises:
            InputDataError: No key can be built for it.
        """
        return self._look(asked_of(self.cache, request, headers, user_segment, retrieves))

    def get_or_compute(
        self,
        request: Request,
        compute: Callable[[], Computed | str],
        *,
        headers: Headers | None = None,
        user_segment: str | None = None,
        retrieves: bool = False,
    ) -> Found:
        """Return what the caches have for a request, or compute it; see `Reader.get_or_compute`.

        Of the threads that ask for the same at one time the first one computes, and the others
        wait for it.

        Raises:
            InputDataError: No key can be built for it.
            RuntimeError: `compute` asks for the very answer that it is to compute.
        """
        asked = asked_of(self.cache, request, headers, user_segment, retrieves)
        if asked.bypass is not None:
            found = self._look(asked)
            computed = made_of(compute())
            return replace(found, answer=computed.answer, computed=computed)
        refuse_own(asked)
        flight_id = (asked.answer_key, retrieves, user_segment)
        with self._turn:
            flight = self._flights.get(flight_id)
            if mine := flight is None:
                flight = self._flights[flight_id] = _Flight()
        if mine:
            return self._fly(flight_id, flight, asked, compute)
        scope, over = self.cache.keys.scope(request.tenant), flight.looked.done()
        with current().lookup(scope, timed=not over) as told:
            found = flight.looked.result()
            told.evidence, told.served = found.evidence, found.served
        found = flight.landed.result()
        return replace(found, joined=not found.hit)

    def store(self, request: Request, answer: str, vector: bytes | None = None) -> bool:
        """Store an answer; see `Reader.store`.

        Raises:
            InputDataError: No key can be built for it, or the vector has another length.
        """
        asked = asked_of(self.cache, request)
        return self._drive(storing(asked, self.cache, answer, fitting(self.cache, vector)))

    def _look(self, asked: Asked) -> Found:
        with current().lookup(self.cache.keys.scope(asked.request.tenant)) as told:
            found = self._drive(looking(asked, self.cache, lambda: self._wire.epoch))
            told.evidence, told.served = found.evidence, found.served
        return found

    def _fly(
        self,
        flight_id: tuple[Any, ...],
        flight: _Flight,
        asked: Asked,
        compute: Callable[[], Computed | str],
    ) -> Found:
        def made() -> Computed | str:
            with computing(asked):
                return compute()

        try:
            found = self._look(asked)
            flight.looked.set_result(found)
            if not found.hit:
                found = self._drive(flying(asked, self.cache, found), made)
        except BaseException as error:
            flight.fail(error)
            raise
        else:
            flight.landed.set_result(found)
            return found
        finally:
            with self._turn:
                del self._flights[flight_id]

    def _drive(self, steps: Steps[_T], compute: Callable[[], Computed | str] | None = None) -> _T:
        reply: Any = None
        try:
            while True:
                reply = self._answer(steps.send(reply), compute)
        except StopIteration as end:
            found: _T = end.value
            return found

    def _answer(self, step: Step, compute: Callable[[], Computed | str] | None) -> Any:
        if isinstance(step, Sequence):
            return self._wire.ask(step)
        if isinstance(step, Pause):
            return time.sleep(step.s)
        if isinstance(step, Computing):
            assert compute is not None
            try:
                return compute()
            except BaseException as error:
                return error
        return tried(step)
