"""Runs requests to a target side by side; the first one that can't go on stops the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results in order. On the first error the rest is cancelled and it is raised.

    A target that does not answer fails every request: without the cancelling, each of them would
    wait for its own timeout.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in tasks]
