"""Simulated caches against libCacheSim, a plain reading of their rules, and each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forecast.traces import local, mixed, zipf
from warmup_lib.forecast.caches import belady, hottest, lfu, lru, nothing, weighted
from warmup_lib.forecast.trace import Flags, Ints
from warmup_lib.forecast.trace_file import read_trace

ITEMS = st.lists(st.integers(0, 12), min_size=1, max_size=120)
ROOM = st.integers(1, 8)


def numbers(items: list[int]) -> Ints:
    return np.array(items, np.int64)


def peer(name: str, item: Ints, capacity: int) -> float:
    lib: Any = pytest.importorskip("libcachesim")
    cache, request = getattr(lib, name)(cache_size=capacity), lib.Request()
    following = np.full(len(item), np.iinfo(np.int64).max)
    order = np.argsort(item, kind="stable")
    same = item[order][1:] == item[order][:-1]
    following[order[:-1][same]] = order[1:][same]
    hits = 0
    for i, (x, use) in enumerate(zip(item.tolist(), following.tolist(), strict=True)):
        request.obj_id, request.clock_time, request.next_access_vtime = x, i, use
        hits += cache.get(request)
    return hits / len(item)


@pytest.mark.parametrize("capacity", [10, 300, 1500])
@pytest.mark.parametrize("kind", ["zipf", "local", "mixed"])
def test_lru_lfu_and_belady_agree_with_libcachesim(kind: str, capacity: int) -> None:
    popular, moving = zipf(1, 20_000, 3000, 0.8), local(2, 20_000, 400)
    item = {"zipf": popular, "local": moving, "mixed": mixed(3, popular, moving)}[kind]
    items = item.tolist()
    assert lru(items, capacity).hits.mean() == pytest.approx(peer("LRU", item, capacity), abs=5e-5)
    assert lfu(items, capacity).hits.mean() == pytest.approx(peer("LFU", item, capacity), abs=5e-5)
    assert belady(item, capacity).mean() == pytest.approx(peer("Belady", item, capacity), abs=5e-5)


@pytest.mark.realdata
@pytest.mark.parametrize("capacity", [1000, 10_000, 50_000])
def test_a_real_trace_agrees_with_libcachesim(real_data: Path, capacity: int) -> None:
    item = read_trace(Path(real_data, "mooncake/conversation_trace.jsonl.gz"), ZoneInfo("UTC")).item
    items = item.tolist()
    assert lru(items, capacity).hits.mean() == pytest.approx(peer("LRU", item, capacity), abs=5e-5)
    assert lfu(items, capacity).hits.mean() == pytest.approx(peer("LFU", item, capacity), abs=5e-5)
    assert belady(item, capacity).mean() == pytest.approx(peer("Belady", item, capacity), abs=5e-5)


def test_what_each_cache_drives_out() -> None:
    items = [1, 2, 1, 3, 1, 2]
    assert lru(items, 2).hits.tolist() == [False, False, True, False, True, False]
    assert lru(items, 2).victims.tolist() == [-1, -1, -1, 2, -1, 3]
    items = [1, 1, 2, 3, 1, 2, 2, 3]
    assert lfu(items, 2).hits.tolist() == [False, True, False, False, True, False, True, False]
    assert lfu(items, 2).victims.tolist() == [-1, -1, -1, 2, -1, 3, -1, 2]


def test_heat_keeps_what_was_asked_for_most_and_lets_it_fade() -> None:
    items = [1, 1, 2, 3, 3, 2, 2, 2]
    forever = hottest(np.inf, np.arange(8, dtype=np.int64))(items, 1)
    # 3 has heat 2 as 1 has, and equals stay; 2 passes it when it was asked for thrice.
    assert forever.hits.tolist() == [False, True, *[False] * 5, True]
    assert forever.victims.tolist() == [-1, -1, 2, 3, 3, 2, 1, -1]
    at = np.array([0, 1, 2, 3, 4, 100, 101, 102], np.int64)
    assert hottest(10.0, at)(items, 1).hits.tolist()[-2:] == [True, True]


def test_heat_outlives_the_range_of_a_float() -> None:
    at = np.arange(0, 40_000, 10, dtype=np.int64)
    items = [i % 3 for i in range(len(at))]
    hits = hottest(1.0, at)(items, 2).hits
    # So short a half life leaves only the order of the last requests: LRU, which a scan defeats.
    assert not hits.any()
    assert hottest(1.0, at)([i % 2 for i in range(len(at))], 2).hits[2:].all()


@given(ITEMS, ROOM)
def test_belady_is_never_beaten_by_a_cache_that_loads_on_misses(
    items: list[int], room: int
) -> None:
    best = belady(numbers(items), room).sum()
    at = np.arange(len(items), dtype=np.int64)
    for online in (lru, lfu):
        assert online(items, room).hits.sum() <= best
    # Refusing items may gain what Belady's, which never does, gains from room for one more.
    for half_life in (1.0, 30.0, np.inf):
        assert (
            hottest(half_life, at)(items, room).hits.sum() <= belady(numbers(items), room + 1).sum()
        )


@given(ITEMS, ROOM)
def test_a_larger_lru_hits_wherever_a_smaller_one_does(items: list[int], room: int) -> None:
    assert np.all(lru(items, room).hits <= lru(items, room + 1).hits)


@given(ITEMS, ROOM, st.sampled_from(["lru", "lfu", "heat"]))
def test_what_is_held_follows_from_hits_and_victims(items: list[int], room: int, kind: str) -> None:
    at = np.arange(len(items), dtype=np.int64)
    simulate = {"lru": lru, "lfu": lfu, "heat": hottest(7.0, at)}[kind]
    done = simulate(items, room)
    held: set[int] = set()
    last = np.full(13, -1, np.int64)
    for i, x in enumerate(items):
        assert set(done.held(last, i).tolist()) == held
        assert bool(done.hits[i]) == (x in held)
        held.discard(int(done.victims[i]))
        if done.victims[i] != x:
            held.add(x)
        assert len(held) <= room
        last[x] = i


@given(ITEMS)
def test_room_for_all_misses_each_item_once(items: list[int]) -> None:
    misses = len(set(items))
    at = np.arange(len(items), dtype=np.int64)
    for simulate in (lru, lfu, hottest(5.0, at)):
        assert (~simulate(items, 13).hits).sum() == misses
    assert (~belady(numbers(items), 13)).sum() == misses


def test_no_room_holds_nothing() -> None:
    done = nothing(numbers([1, 1, 2]))
    assert not done.hits.any()
    assert done.held(np.array([-1, 1, 2]), 3).tolist() == []


def test_hits_are_weighed_by_what_they_save() -> None:
    hits: Flags = np.array([True, False, True])
    assert weighted(hits, None) == pytest.approx(2 / 3)
    assert weighted(hits, np.array([1.0, 8.0, 1.0])) == pytest.approx(0.2)
    assert weighted(hits, np.zeros(3)) == 0.0
