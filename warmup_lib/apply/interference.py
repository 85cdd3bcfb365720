"""The gate that warm-up requests to one model host pass, so that live traffic does not suffer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from warmup_lib.apply.meter import Meter
from warmup_lib.apply.pace import Pace
from warmup_lib.config import ApplyConfig
from warmup_lib.errors import HostUnavailable
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.metrics import Load, load

POLL_S = 0.3
"""Between two looks at a host's load: one a request would itself be a load."""

_WAY_S = 0.05
"""After a look: by then we have the answers that the host had counted, but not yet sent to us."""


class WindowOver(Exception):
    """The warm-up window has ended: this request is not sent any more."""


class Guard:
    """Holds warm-up requests to one host back; set on the host while in context.

    Args:
        host: The host.
        config: Limits and the most requests in flight.
        ends: End of the warm-up window, by `time.monotonic`.
    """

    def __init__(self, host: ModelHost, config: ApplyConfig, ends: float) -> None:
        self._host = host
        self._config = config
        self._ends = ends
        self._pace: Pace | None = None
        self._line = asyncio.Lock()
        self._news = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._meter = Meter()
        self._started = float("-inf")
        self._rest_until = float("-inf")
        self._peak = 0
        self._places = 0
        self._sees_load: bool | None = None

    async def __aenter__(self) -> Guard:
        self._host.gate = self.turn
        return self

    async def __aexit__(self, *_: object) -> None:
        self._host.gate = None
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    def facts(self) -> dict[str, Any]:
        """Return how often and how long it paused, and the most requests it let in flight.

        `sees_load` says whether the host tells its load; where it does not, our own answers were
        judged in its place. None: nothing was sent.
        """
        pace = self._pace
        usual = pace.baseline_s if pace else None
        return {
            "pauses": pace.pauses if pace else 0,
            "paused_s": round(pace.paused_s(time.monotonic()), 3) if pace else 0.0,
            "peak_concurrency": self._peak,
            "sees_load": self._sees_load,
            "live_first_token_ms": None if usual is None else round(1000 * usual, 1),
        }

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait until one more item may be begun: no more at once than requests in flight.

        Were more begun, the end of the window would find many half warm and few whole.

        Raises:
            WindowOver: The window ends before it may.
        """
        while self._places >= (max(1, int(self._pace.limit)) if self._pace else 1):
            await self._next(float("inf"))
        self._places += 1
        try:
            yield
        finally:
            self._places -= 1
            self._news.set()

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """Wait until a request may be sent; leave it once it was answered.

        Raises:
            WindowOver: The window ends before it may.
        """
        async with self._line:
            pace = await self._begin()
            await self._open(pace)
            begun = time.monotonic()
            self._started = begun
            self._meter.sent(tokens)
        self._peak = max(self._peak, self._meter.in_flight)
        try:
            yield
        finally:
            now = time.monotonic()
            self._meter.answered(tokens, now - begun, now)
            pace.answered(now - begun, now)
            self._rest_until = now + (now - begun) * pace.rest(now)
            self._news.set()

    async def _begin(self) -> Pace:
        """Take the first look, which tells whether the host can be looked at."""
        if self._pace is None:
            first = await self._load()
            blind = first is None
            self._sees_load = not blind
            self._meter.begin(first)
            now = time.monotonic()
            most = self._config.concurrency
            self._pace = Pace(self._config.interference, most, blind=blind, at=now)
            self._watching = asyncio.create_task(self._watch(self._pace, blind))
        return self._pace

    async def _open(self, pace: Pace) -> None:
        while time.monotonic() < self._ends:
            may = self._may_start(pace)
            if may <= time.monotonic():
                return
            await self._next(may)
        raise WindowOver

    async def _next(self, at: float) -> None:
        """Wait until something changes, at most until a moment.

        Raises:
            WindowOver: The window ends first.
        """
        wait = min(at, self._ends) - time.monotonic()
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, wait)):
                await self._news.wait()
        if time.monotonic() >= self._ends:
            raise WindowOver

    def _may_start(self, pace: Pace) -> float:
        """Return when the next request may start; infinite: not before something changes."""
        if pace.paused is not None or self._meter.in_flight >= max(1, int(pace.limit)):
            return float("inf")
        return max(self._started + 1 / self._config.interference.rate, self._rest_until)

    async def _watch(self, pace: Pace, blind: bool) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            found = None if blind else await self._load()
            at = time.monotonic()
            await asyncio.sleep(_WAY_S)
            if blind or found is not None:
                pace.look(self._meter.look(found, at))
                self._news.set()

    async def _load(self) -> Load | None:
        try:
            return load(await self._host.metrics())
        except HostUnavailable:
            return None  # whoever sends a request learns it too
