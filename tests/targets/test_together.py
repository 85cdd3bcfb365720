"""The first request that can't go on stops the others, and nothing is left running."""

from __future__ import annotations

import asyncio

import pytest

from warmup_lib.errors import HostUnavailable
from warmup_lib.targets.together import together


def test_results_keep_their_order() -> None:
    async def late(n: int) -> int:
        await asyncio.sleep(0.01 * (3 - n))
        return n

    assert asyncio.run(together(late(n) for n in range(3))) == [0, 1, 2]
    assert asyncio.run(together([])) == []


def test_the_first_error_cancels_the_rest() -> None:
    cancelled = []

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    async def fails() -> None:
        await asyncio.sleep(0.01)
        raise HostUnavailable("gpu", "no connection")

    with pytest.raises(HostUnavailable, match="no connection"):
        asyncio.run(together([waits(), fails(), waits()]))
    assert cancelled == [1, 1]
