"""Which plan owns a target: the last one whose apply began there. A stale apply stops by itself.

A Redis keeps the record itself, so that it holds for every lake that writes to it. A model host
has no place for one; there it is kept in the lake, beside the locks.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, runtime_checkable
from urllib.parse import quote

from warmup_lib.errors import Superseded
from warmup_lib.lake import Lake
from warmup_lib.targets.base import Target


@runtime_checkable
class KeepsGeneration(Protocol):
    """A target that records the plan that owns it."""

    async def set_generation(self, plan_id: str) -> None:
        """Record the owner."""

    async def generation(self) -> str | None:
        """Return the owner; None: nobody."""


class _InLake:
    """The owner of a target that can't record it."""

    def __init__(self, lake: Lake, target: str) -> None:
        self._fs = lake.fs
        self._folder = f"{lake.root}/_locks"
        self._file = f"{self._folder}/generation-{quote(target, safe='')}"

    async def set_generation(self, plan_id: str) -> None:
        self._fs.makedirs(self._folder, exist_ok=True)
        await asyncio.to_thread(self._fs.pipe_file, self._file, plan_id.encode())

    async def generation(self) -> str | None:
        try:
            value: bytes = await asyncio.to_thread(self._fs.cat_file, self._file)
        except FileNotFoundError:
            return None
        return value.decode() or None


class Generation:
    """One plan's claim on one target.

    Args:
        lake: Where the record is, for targets that keep none.
        target: The target.
        plan_id: The plan that claims it.
    """

    def __init__(self, lake: Lake, target: Target, plan_id: str) -> None:
        self._record = target if isinstance(target, KeepsGeneration) else _InLake(lake, target.name)
        self._target = target.name
        self._plan_id = plan_id

    async def claim(self) -> None:
        """Take the target over from whichever plan was applied last.

        Raises:
            TargetUnavailable: The target does not answer.
        """
        await self._record.set_generation(self._plan_id)

    async def check(self) -> None:
        """Raise unless this plan still owns the target. A target that was emptied has no owner.

        Raises:
            Superseded: Another plan has begun here.
            TargetUnavailable: The target does not answer.
        """
        owner = await self._record.generation()
        if owner not in (None, self._plan_id):
            raise Superseded(
                f"plan {owner} has begun on target '{self._target}' after plan {self._plan_id}, "
                "which stops here"
            )
