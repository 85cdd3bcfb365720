"""The gate that warm-up requests to one model host pass, so that live traffic does not suffer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from warmup_lib.apply.pace import Pace, Seen
from warmup_lib.config import ApplyConfig
from warmup_lib.errors import HostUnavailable
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.metrics import Load, load

POLL_S = 0.3
"""Between two looks at a host's load: one a request would itself be a load."""


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
        self._meter = _Meter()
        self._started = float("-inf")
        self._rest_until = float("-inf")
        self._peak = 0
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
            self._meter.answered(tokens, now - begun)
            pace.answered(now - begun, now)
            if pace.limit < 1:
                self._rest_until = now + (now - begun) * (1 / pace.limit - 1)
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
        while True:
            now = time.monotonic()
            if now >= self._ends:
                raise WindowOver
            may = self._may_start(pace)
            if may <= now:
                return
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(may, self._ends) - now):
                    await self._news.wait()

    def _may_start(self, pace: Pace) -> float:
        """Return when the next request may start; infinite: not before something changes."""
        if pace.paused is not None or self._meter.in_flight >= max(1, int(pace.limit)):
            return float("inf")
        return max(self._started + 1 / self._config.interference.rate, self._rest_until)

    async def _watch(self, pace: Pace, blind: bool) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            found = None if blind else await self._load()
            if blind or found is not None:
                pace.look(self._meter.look(found, time.monotonic()))
                self._news.set()

    async def _load(self) -> Load | None:
        try:
            return load(await self._host.metrics())
        except HostUnavailable:
            return None  # whoever sends a request learns it too


class _Meter:
    """Tells live requests from ours in what a host counts together.

    The host's sums hold our requests too. Those that ask for one token are taken out of them, for
    their first token took as long as they did. While longer ones are in flight nothing is said.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self._longer = 0
        self._unclear = False
        self._ours = False
        self._own_count = 0
        self._own_s = 0.0
        self._last: Load | None = None
        self._count = 0
        self._seconds = 0.0

    def begin(self, first: Load | None) -> None:
        """Take the first look."""
        self._last = first

    def sent(self, tokens: int) -> None:
        """Count a request in."""
        self.in_flight += 1
        self._ours = True
        if tokens > 1:
            self._longer += 1
            self._unclear = True

    def answered(self, tokens: int, seconds: float) -> None:
        """Count a request out."""
        self.in_flight -= 1
        if tokens > 1:
            self._longer -= 1
        elif tokens == 1:
            self._own_count += 1
            self._own_s += seconds

    def look(self, now: Load | None, at: float) -> Seen:
        """Return what went on since the last look."""
        ours, unclear = self._ours, self._unclear
        self._ours, self._unclear = self.in_flight > 0, self._longer > 0
        last, self._last = self._last, now
        if now is None or last is None:
            return Seen(at, ours)
        # What is below zero is carried over: an answer that the host counted before the last look
        # may reach us only after it.
        self._count += now.first_tokens - last.first_tokens - self._own_count
        self._seconds += now.first_token_s - last.first_token_s - self._own_s
        self._own_count, self._own_s = 0, 0.0
        waiting = max(0, now.waiting - self.in_flight)  # ours have the lowest priority: they wait
        if unclear or now.first_tokens < last.first_tokens:  # the latter: it was restarted
            self._count, self._seconds = 0, 0.0
        count, seconds = max(self._count, 0), max(self._seconds, 0.0)
        self._count, self._seconds = min(self._count, 0), min(self._seconds, 0.0)
        return Seen(at, ours, waiting, count, seconds)
