"""Draws of later traffic: proportional over strata, and spread evenly in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np


def stratified(strata: Sequence[Hashable], size: int, seed: int) -> list[int]:
    """Return positions of a proportional sample with at least one of each stratum.

    Shares are rounded by largest remainder, so that the sample has exactly
    `min(size, len(strata))` positions. Where there are more strata than that, the largest get
    one each. Inside a stratum positions are taken at even distances from a drawn start: where
    they are in order of time, every hour gets its share too.

    Args:
        strata: The stratum of each position.
        size: Positions to take.
        seed: Of the drawn starts.

    Returns:
        Positions, ascending.
    """
    members: dict[Hashable, list[int]] = defaultdict(list)
    for position, stratum in enumerate(strata):
        members[stratum].append(position)
    groups = sorted(members.values(), key=lambda group: (-len(group), group[0]))
    counts = _apportion([len(group) for group in groups], min(size, len(strata)))
    draw = np.random.default_rng(seed)
    chosen: list[int] = []
    for group, count in zip(groups, counts, strict=True):
        start = draw.random()
        chosen += [group[int((start + turn) * len(group) / count)] for turn in range(count)]
    return sorted(chosen)


def _apportion(sizes: Sequence[int], total: int) -> list[int]:
    """Share `total` by size (descending), then give the empty-handed one from the largest."""
    if not sizes:
        return []
    whole, remainders = zip(*[divmod(total * size, sum(sizes)) for size in sizes], strict=True)
    counts = list(whole)
    by_remainder = sorted(range(len(sizes)), key=lambda i: (-remainders[i], i))
    for index in by_remainder[: total - sum(counts)]:
        counts[index] += 1
    for index in range(min(total, len(sizes))):
        if counts[index] == 0:
            counts[max(range(len(sizes)), key=lambda i: (counts[i], i))] -= 1
            counts[index] = 1
    return counts


def spread(count: int, size: int) -> list[int]:
    """Return `size` of `count` positions (all, where there are fewer) at even distances."""
    size = min(size, count)
    return [position * count // size for position in range(size)]
