"""What heads begin with alike, as trees: each stretch of tokens is one row, which is paid for once.

Tokens are estimated from the texts, in whole cache blocks: a plan asks no host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warmup_lib.plan.neighbours import Ints

BLOCK = 16
"""Tokens of a block; hosts have 16 or 32."""

_BYTES = 4 * BLOCK


@dataclass(frozen=True)
class Stems:
    """The rows of some heads: first the heads in their order, then the stems that they share.

    Attributes:
        above: (n,) row that each one begins with, -1: none.
        tokens: (n,) tokens that each one adds to it.
        ends: (n,) tokens from the beginning to the end of each one.
        head: (n,) a head that begins with it, itself for a head.
    """

    above: Ints
    tokens: Ints
    ends: Ints
    head: Ints


def stems(heads: Sequence[tuple[str, bytes]]) -> Stems:
    """Return the trees of some heads.

    Args:
        heads: Where each one is kept, for places share nothing, and its text.
    """
    reach = [len(text) // _BYTES for _, text in heads]
    above = [-1] * len(heads)
    owner = list(range(len(heads)))
    path: list[int] = []  # from a root to the head before, each row reaching farther
    before = ("", b"")
    for row in sorted(range(len(heads)), key=lambda row: (heads[row], row)):
        common = _common(before, heads[row])
        below = -1
        while path and reach[path[-1]] > common:
            below = path.pop()
        if common and not (path and reach[path[-1]] == common):
            reach.append(common)
            above.append(above[below])
            owner.append(row)
            above[below] = len(reach) - 1
            path.append(above[below])
        above[row] = path[-1] if path else -1
        path.append(row)
        before = heads[row]
    ends = BLOCK * np.array([*reach, 0], np.int64)
    parents = np.array(above, np.int64)
    return Stems(parents, ends[:-1] - ends[parents], ends[:-1], np.array(owner, np.int64))


def _common(a: tuple[str, bytes], b: tuple[str, bytes]) -> int:
    """Return how many whole blocks two heads begin with alike."""
    if a[0] != b[0]:
        return 0
    most = min(len(a[1]), len(b[1])) // _BYTES
    return next(
        (
            n
            for n in range(most)
            if a[1][n * _BYTES : (n + 1) * _BYTES] != b[1][n * _BYTES : (n + 1) * _BYTES]
        ),
        most,
    )
