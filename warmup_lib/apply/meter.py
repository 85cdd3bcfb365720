"""Tells live requests from warm-up requests in what a host counts together, without I/O."""

from __future__ import annotations

import statistics
from collections import deque

from warmup_lib.apply.pace import Seen
from warmup_lib.targets.metrics import Load

_WAYS = 15


class Meter:
    """Tells live requests from ours in what a host counts together.

    The host's sums hold our requests too. Those that ask for one token are taken out of them: to us
    they took as long as their first token took the host, and a little for the way, which is known
    from looks that saw none but ours. While longer ones are in flight nothing is said.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self._longer = 0
        self._unclear = False
        self._ours = False
        self._own: list[tuple[float, float]] = []
        self._last: Load | None = None
        self._early = 0
        self._early_s = 0.0
        self._ways: deque[float] = deque(maxlen=_WAYS)

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

    def answered(self, tokens: int, seconds: float, at: float) -> None:
        """Count a request out."""
        self.in_flight -= 1
        if tokens > 1:
            self._longer -= 1
        elif tokens == 1:
            self._own.append((at, seconds))

    def look(self, now: Load | None, at: float) -> Seen:
        """Return what went on since the last look.

        Args:
            now: What the host said.
            at: When it did. Our answers that were on their way then must have come meanwhile.
        """
        ours, unclear = self._ours, self._unclear
        self._ours, self._unclear = self.in_flight > 0, self._longer > 0
        last, self._last = self._last, now
        way = statistics.median(self._ways) if self._ways else 0.0
        told = [seconds for when, seconds in self._own if when - way <= at]
        self._own = [(when, seconds) for when, seconds in self._own if when - way > at]
        if now is None or last is None:
            return Seen(at, ours)
        own, own_s = len(told), sum(told)
        waiting = max(0, now.waiting - self.in_flight)  # ours have the lowest priority: they wait
        if unclear or now.first_tokens < last.first_tokens:  # the latter: it was restarted
            self._early, self._early_s = 0, 0.0
            return Seen(at, ours, waiting)
        count = now.first_tokens - last.first_tokens - own + self._early
        seconds = now.first_token_s - last.first_token_s - own_s + own * way + self._early_s
        # Fewer than none: an answer that the host had counted before the last look came late.
        self._early, self._early_s = min(count, 0), seconds if count < 0 else 0.0
        if count == 0 and own:
            self._ways.append(max(0.0, way - seconds / own))
        return Seen(at, ours, waiting, max(count, 0), max(seconds, 0.0) if count > 0 else 0.0)
