"""The bound that bench/reports/reader.md reports holds here too."""

from __future__ import annotations

import asyncio

import pytest

from bench import reader
from tests.layers.building import new_keys
from warmup_lib.reader import Cache
from warmup_lib.stack.state import StackState


@pytest.mark.slow
@pytest.mark.stack
def test_the_slowest_lookups_take_at_most_twice_the_time_of_a_get(
    stack_redis: StackState, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stack_redis.redis is not None
    monkeypatch.setattr(reader, "LOOKS", 4000)
    cache = Cache(stack_redis.redis.url, new_keys(), "e" * 16, reader.DIMENSION, timeout_s=5)
    texts = [f"What does transfer {n} cost?" for n in range(200)]
    keys = reader.fill(cache, reader.requests(texts), ["By the list of prices."] * len(texts))
    # What else runs on this machine disturbs both alike, but not in the same moments.
    rounds = range(3)
    assert min(reader.synchronous(cache, texts, keys).ratio for _ in rounds) <= reader.BOUND
    looks = (asyncio.run(reader.asynchronous(cache, texts, keys)) for _ in rounds)
    assert min(look.ratio for look in looks) <= reader.BOUND
    assert reader.round_trips(cache, reader.requests(texts)[0]) == 1
