"""What every target can say, whatever it is. Layers know the kinds; stages know only this."""

from __future__ import annotations

from typing import Literal, Protocol

TargetKind = Literal["redis", "host"]


class Target(Protocol):
    """A place that gets warm."""

    @property
    def name(self) -> str:
        """The configured name."""

    @property
    def kind(self) -> TargetKind:
        """Which layers it can take."""

    async def epoch(self) -> str:
        """Return what changes when the process restarts and so has lost what it held.

        Raises:
            TargetUnavailable: The target does not answer.
        """

    async def close(self) -> None:
        """Close the connections."""
