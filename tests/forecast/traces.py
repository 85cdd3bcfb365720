"""Traces that are hard in one way each, for tests of caches and backtests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warmup_lib.forecast.trace import Ints, Trace, trace_of

HOUR = 3_600_000_000


def spread(item: Ints, hours: int) -> Trace:
    """Spread accesses evenly over some hours from 1970 on."""
    at = (np.arange(len(item)) * (hours * HOUR / len(item))).astype(np.int64)
    return trace_of(at, np.asarray(item, np.int64))


def zipf(seed: int, n: int, items: int, exponent: float) -> Ints:
    worth = 1.0 / np.arange(1, items + 1) ** exponent
    drawn = np.random.default_rng(seed).choice(items, n, p=worth / worth.sum())
    return np.asarray(drawn, np.int64)


def local(seed: int, n: int, width: int) -> Ints:
    """Return accesses to a window of items that moves on: nothing is worth keeping for long."""
    return np.asarray(np.arange(n) // 10 + np.random.default_rng(seed).integers(0, width, n))


def replaced(days: int, a_day: int, items: int, every: int) -> Ints:
    """Return accesses to one set of items in random order, a new one each day, over and over.

    The set is replaced by another every so many days.
    """
    orders = [np.random.default_rng(day).permutation(items) for day in range(days)]
    return np.concatenate([np.resize(o, a_day) + d // every * items for d, o in enumerate(orders)])


def half_new(days: int, a_day: int, items: int) -> Ints:
    """Return scans of a set of items, over and over, of which half are new each day."""
    scans = [np.arange(items) + day * items // 2 for day in range(days)]
    return np.concatenate([np.resize(scan, a_day) for scan in scans])


def mixed(seed: int, one: Ints, other: Ints) -> Ints:
    first = np.random.default_rng(seed).random(len(one)) < 0.5
    return np.asarray(np.where(first, one, other + 10**7))


def hard(seed: int, n: int) -> Iterator[tuple[str, Ints]]:
    """Yield traces by name: what wins on one of them loses on another."""
    wonders = np.random.default_rng(seed).permutation(n)
    scan, long_scan = np.arange(n) % 700, np.arange(n) % 3000
    popular = zipf(seed, n, 2000, 0.9)
    half = n // 2
    yield "zipf", zipf(seed, n, 5000, 0.9)
    yield "nearly uniform", zipf(seed, n, 5000, 0.6)
    yield "uniform", np.random.default_rng(seed).integers(0, 2000, n)
    yield "scan", scan
    yield "long scan", long_scan
    yield "new items every hour", popular + np.arange(n) // (n // 24) * 2000
    yield "local", local(seed, n, 300)
    yield "widely local", local(seed, n, 1500)
    yield "one-hit wonders", wonders
    yield "popular among wonders", mixed(seed, popular, wonders)
    yield "popular among a scan", mixed(seed, popular, long_scan)
    yield "popular among local", mixed(seed, local(seed, n, 200), popular)
    yield "popular, then local", np.append(popular[:half], local(seed, n - half, 200) + 10**6)
    yield "local, then popular", np.append(local(seed, half, 200) + 10**6, popular[half:])
    yield "scan, then local", np.append(scan[:half], local(seed, n - half, 200) + 10**6)
