"""How many cold requests a host's cache takes in before they push out what is being measured.

A host drops what was used longest ago. Each cold request fills as much of its cache as its prompt
is long, so that a hundred of them turn a small cache over, and heads that nobody asked for
meanwhile are lost to the measurement alone: no application would have lost them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from warmup_lib.layers.base import Match

_UNFINISHED = 32
"""Tokens that a request takes beside its own: its last block is not full, half of it on average."""


class Crowding:
    """Keeps count of what a sample has filled of each host's cache.

    Args:
        room: Tokens that a host takes in before it drops what is measured; hosts that are not
            named take any number.
        requests: Size of the sample.
    """

    def __init__(self, room: Mapping[str, int], requests: int) -> None:
        self._room = room
        self._requests = requests
        self._warm: dict[str, int] = defaultdict(int)
        self._cold: dict[str, list[int]] = defaultdict(list)

    def took(self, host: str, match: Match, *, cold: bool) -> None:
        """Take in what a request filled."""
        new = (match.prompt_tokens or 0) - (match.cached_tokens or 0) + _UNFINISHED
        if cold:
            self._cold[host].append(new)
        else:
            self._warm[host] += new

    def allows(self, host: str, number: int) -> bool:
        """Return whether a cold request still fits, so that those that fit spread over the sample.

        What the requests themselves will fill is reckoned from those that were asked.

        Args:
            host: The host.
            number: How many requests of the sample were asked before.
        """
        if host not in self._room:
            return True
        warm = self._warm[host] / number * self._requests if number else 0.0
        so_far = (self._room[host] - warm) * (number + 1) / self._requests
        cold = self._cold[host]
        return sum(cold) + (sum(cold) / len(cold) if cold else 0.0) <= so_far
