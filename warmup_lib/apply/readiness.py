"""Waits for targets that are not up yet when warming is triggered, and measures for how long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from warmup_lib.errors import HostUnavailable, TargetUnavailable
from warmup_lib.targets.base import Target
from warmup_lib.targets.host import ModelHost

POLL_S = 0.25


class Readiness:
    """When each target became ready, counted from the trigger; the trigger is the making of this.

    Args:
        targets: The targets to be warmed.
        timeout_s: Longest wait for one that is not ready yet.
    """

    def __init__(self, targets: Sequence[Target], timeout_s: float) -> None:
        self._targets = {target.name: target for target in targets}
        self._timeout_s = timeout_s
        self._at = datetime.now(UTC)
        self._begun = time.monotonic()
        self._waits: dict[str, asyncio.Task[None]] = {}
        self._facts: dict[str, dict[str, Any]] = {}

    async def ready(self, name: str) -> None:
        """Return once a target is ready; all who ask wait together.

        Raises:
            TargetUnavailable: It was not ready in time; the last reason.
            ConfigError: It answers, and refuses us.
        """
        if name not in self._waits:
            self._waits[name] = asyncio.create_task(self._wait(self._targets[name]))
        await asyncio.shield(self._waits[name])

    def pending(self, name: str) -> bool:
        """Say whether a target is to be warmed and not known to be ready or not."""
        known = name in self._waits and self._waits[name].done()
        return name in self._targets and not known

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return by target when it was triggered, when it was ready, and whether that was later."""
        return dict(self._facts)

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for each target that was not ready at the trigger."""
        return tuple(
            f"target '{name}' was not ready when warming was triggered: it was waited for, "
            f"{fact['ready_after_ms']:,.0f} ms"
            for name, fact in self._facts.items()
            if fact["waited"] and fact["ready_after_ms"] is not None
        )

    async def _wait(self, target: Target) -> None:
        waited = False
        fact = {"triggered_at": self._at.isoformat(), "ready_after_ms": None}
        while True:
            try:
                await _answers(target)
            except TargetUnavailable:
                self._facts[target.name] = {**fact, "waited": True}
                if self._since_trigger() >= self._timeout_s:
                    raise
                waited = True
                await asyncio.sleep(POLL_S)
            else:
                offset = round(1000 * self._since_trigger(), 3)
                self._facts[target.name] = {**fact, "ready_after_ms": offset, "waited": waited}
                return

    def _since_trigger(self) -> float:
        return time.monotonic() - self._begun


async def _answers(target: Target) -> None:
    """Raise unless the target takes work: a host must be healthy and serve a model."""
    if isinstance(target, ModelHost):
        await target.ready()
        if not await target.served():
            raise HostUnavailable(target.name, "it serves no model")
    else:
        await target.epoch()
