"""How fast a host may be warmed beside its live traffic: decided from what was seen, without I/O.

Requests in flight rise one by one while nobody suffers and are halved where somebody does (AIMD).
Below one they become rests between requests. What live requests feel is judged against what they
feel while warming pauses, which is why warming now and then pauses only to listen.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from typing import Literal

from warmup_lib.config import InterferenceConfig

ENOUGH = 3
"""First tokens, or answers, that a judgement takes: single ones differ too much."""

BREATH = 0.5
"""Rest after a request beside live traffic, in terms of what it took. A live request that comes
just before the end of ours would else find the next one before it in the host's batch."""

LEAST = 1 / 4
"""The lowest pace: one request, then a rest of three times as long."""

_WORTH = 1.5
"""More in flight is worth it while each takes no longer than this, against one alone."""

_GROUPS = 5
_SILENCE_S = 1.0
_LISTEN_S = 3.0
_STALE_S = 30.0
_SETTLE_S = 0.4
_LONGEST_SETTLE_S = 3.0
_FIRST_ENOUGH = 5
_FIRST_LISTEN_S = 5.0
_STALE_FIRST_S = 10.0
_RISE_S = 2.0
_LONGEST_RISE_S = 60.0
_ALONE_S = 5.0
_ANSWERS = 20

Why = Literal["listening", "queue", "slow"]


@dataclass(frozen=True)
class Seen:
    """What went on at a host between two looks.

    Attributes:
        at: When the second look was taken, in seconds of a clock that never turns back.
        ours: A warm-up request was in flight meanwhile.
        waiting: Live requests in the queue at the second look.
        first_tokens: Live requests that got their first token meanwhile.
        first_token_s: Seconds that these waited for it, together.
    """

    at: float
    ours: bool
    waiting: int = 0
    first_tokens: int = 0
    first_token_s: float = 0.0


@dataclass
class _Group:
    """First tokens seen so far."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seen: Seen) -> None:
        self.count += seen.first_tokens
        self.seconds += seen.first_token_s

    def taken(self) -> float | None:
        """Return the mean and begin anew; None: there are none."""
        mean = self.seconds / self.count if self.count else None
        self.count, self.seconds = 0, 0.0
        return mean


class Pace:
    """The pace at which one host is warmed.

    Args:
        config: The limits.
        most: Most requests in flight.
        blind: The host says nothing of its load: our own answers are judged in its place.
        at: Now.

    Attributes:
        limit: Requests that may be in flight; below 1, the share of time that one may take.
        paused: Why no request may be sent now; None: some may.
        pauses: Pauses for the sake of live traffic; listening is none.
    """

    def __init__(self, config: InterferenceConfig, most: int, *, blind: bool, at: float) -> None:
        self._config = config
        self._most = most
        self._blind = blind
        self.limit = 1.0
        self.paused: Why | None = None if blind else "listening"
        self.pauses = 0
        self._paused_s = 0.0
        self._since = at
        self._busy, self._quiet = _Group(), _Group()
        self._undisturbed: deque[float] = deque(maxlen=_GROUPS)
        self._listened: float | None = None
        self._heard = float("-inf")
        self._calm = blind
        self._settle_s = _SETTLE_S
        self._settled = at
        self._alone: deque[float] = deque(maxlen=_ANSWERS)
        self._recent: deque[float] = deque(maxlen=ENOUGH)
        self._steady_since = at
        self._rise_s = _RISE_S

    @property
    def baseline_s(self) -> float | None:
        """Live first-token time while nothing is warmed; None: nobody was heard."""
        return statistics.median(self._undisturbed) if self._undisturbed else None

    def paused_s(self, at: float) -> float:
        """Return the seconds of all pauses until now, listening too."""
        return self._paused_s + (at - self._since if self.paused is not None else 0.0)

    def rest(self, at: float) -> float:
        """Return how long to rest after a request, in terms of what it took."""
        breath = BREATH if at - self._heard < _ALONE_S else 0.0
        return max(1 / self.limit - 1, breath)

    def answered(self, seconds: float, at: float) -> None:
        """Take in how long one warm-up request took."""
        self._recent.append(seconds)
        if self._too_slow():
            self._own_are_slow(at)
        elif self.limit <= 1:
            self._alone.append(seconds)

    def look(self, seen: Seen) -> None:
        """Take in what a look showed."""
        if seen.first_tokens:
            self._heard = seen.at
        if not seen.ours and seen.at > self._settled:
            self._quiet.add(seen)
        elif seen.ours:
            self._settled = seen.at + self._settle_s
            if self.paused is None:
                self._busy.add(seen)
        if self.paused is not None:
            self._maybe_resume(seen)
        elif seen.waiting > self._config.waiting:
            self._slow_down(seen.at)
            self._pause("queue", seen.at)
        elif self._busy.count >= ENOUGH:
            self._judge(seen.at)
        else:
            self._maybe_rise(seen.at)

    # -- live requests ---------------------------------------------------------------------------

    def _judge(self, at: float) -> None:
        mean = self._busy.taken()
        usual = self.baseline_s
        # A first impression is looked at again soon.
        stale = min(_STALE_S, _STALE_FIRST_S * len(self._undisturbed))
        old = self._listened is None or at - self._listened > stale
        if mean is None or usual is None or old:
            self._pause("listening", at, mean)
            return
        room = (self._config.slowdown - 1) * usual
        felt = mean - usual
        if felt > room:
            self._slow_down(at)
            self._pause("slow", at, mean)
        elif felt > room / 2 and self.limit > 1:
            self._fewer(at)
        else:
            self._calm = felt <= room / 4
            self._maybe_rise(at)

    def _maybe_resume(self, seen: Seen) -> None:
        if seen.waiting > self._config.waiting:
            return
        waited = seen.at - max(self._since, self._settled)
        first = not (self._undisturbed or self._blind)
        heard = self._quiet.count >= (_FIRST_ENOUGH if first else ENOUGH)
        nobody = waited >= _SILENCE_S and not self._quiet.count and not self._blind
        longest = _FIRST_LISTEN_S if first else _LISTEN_S
        # Not for ever, should one of ours in flight not end.
        over = waited >= longest or seen.at - self._since >= 3 * longest
        if self.paused == "queue" or heard or nobody or over:
            self._resume(seen.at)

    def _resume(self, at: float) -> None:
        if self.paused != "queue":
            self._listened = at
            if (mean := self._quiet.taken()) is not None:
                self._undisturbed.append(mean)
        self._paused_s += at - self._since
        self.paused = None
        self._busy.taken()
        self._steady_since = at

    def _pause(self, why: Why, at: float, felt_s: float | None = None) -> None:
        # Requests that we held up are still to get their first token: they tell of us.
        self._settle_s = min(max(_SETTLE_S, 2 * (felt_s or 0.0)), _LONGEST_SETTLE_S)
        self._settled = at + self._settle_s
        self.paused = why
        self.pauses += why != "listening"
        self._since = at
        self._quiet.taken()

    # -- how many in flight ----------------------------------------------------------------------

    def _too_slow(self) -> bool:
        """Say whether our last answers took longer than those that were alone."""
        if len(self._recent) < ENOUGH or not self._alone:
            return False
        usual = statistics.median(self._alone)
        bound = _WORTH if self.limit > 1 else self._config.slowdown
        return statistics.median(self._recent) > bound * usual

    def _own_are_slow(self, at: float) -> None:
        if self.limit > 1:
            # More in flight only made each slower: the host was busy with one less.
            self._fewer(at)
        elif self._blind and self.paused is None:
            self._alone.extend(self._recent)  # or a host that stays slow would stop us for ever
            self._slow_down(at)
            self._pause("slow", at)

    def _maybe_rise(self, at: float) -> None:
        calm = self._calm or self.limit < 1 or at - self._heard >= _ALONE_S
        long_enough = at - self._steady_since >= self._rise_s
        if calm and long_enough and len(self._recent) == ENOUGH:
            self._change(2 * self.limit if self.limit < 1 else self.limit + 1, at)

    def _slow_down(self, at: float) -> None:
        self._change(self.limit / 2, at)

    def _fewer(self, at: float) -> None:
        """Take the last rise back, and wait longer before the next."""
        self._change(self.limit - 1, at)
        self._rise_s = min(2 * self._rise_s, _LONGEST_RISE_S)

    def _change(self, limit: float, at: float) -> None:
        self.limit = min(max(limit, LEAST), float(self._most))
        self._recent.clear()
        self._steady_since = at
        self._calm = self._blind
