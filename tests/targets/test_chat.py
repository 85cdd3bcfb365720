"""Token prefixes and event streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.targets.chat import common_prefix, events, result

ids = st.lists(st.integers(0, 3))


@given(ids, ids, ids)
def test_common_prefix_is_shared_and_longest(head: list[int], a: list[int], b: list[int]) -> None:
    shared = common_prefix(head + a, head + b)
    assert shared >= len(head)
    assert (head + a)[:shared] == (head + b)[:shared]
    rest = (head + a)[shared : shared + 1], (head + b)[shared : shared + 1]
    assert rest[0] != rest[1] or rest == ([], [])


def test_events_end_with_done() -> None:
    async def lines() -> AsyncIterator[str]:
        for line in (": ping", "", 'data: {"a": 1}', 'data:{"a": 2}', "data: [DONE]", "data: {"):
            yield line

    async def read() -> list[dict[str, Any]]:
        return [event async for event in events(lines())]

    assert asyncio.run(read()) == [{"a": 1}, {"a": 2}]


def test_a_host_that_does_not_say_what_was_cached() -> None:
    for usage in ({"prompt_tokens": 7}, {"prompt_tokens": 7, "prompt_tokens_details": None}):
        assert result("", "stop", usage, None, 1.0).cached_tokens is None
    usage = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 0}}
    assert result("", "stop", usage, None, 1.0).cached_tokens == 0
