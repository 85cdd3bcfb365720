"""What a lookup asks of the client that drives it: the steps that asyncio and threads take alike.

Generators yield steps and are sent what came of them. What failed is sent as the exception itself,
and none is raised on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from warmup_lib.search import Command

LONG = 1000
"""Texts of more characters are taken apart off the event loop, which others wait for."""

Work = Callable[[], Any]
"""What takes long and touches no connection."""


@dataclass(frozen=True)
class Pause:
    """Waiting for `s` seconds."""

    s: float


@dataclass(frozen=True)
class Computing:
    """Making the answer."""


Step = Sequence[Command] | Work | Pause | Computing
"""A round trip, or one of the others."""

_T = TypeVar("_T")
Steps = Generator[Step, Any, _T]


def worked(work: Work, text: str) -> Steps[Any]:
    """Return what some work on a text gives: done here for a short one, else as a step."""
    if len(text) <= LONG:
        return work()
    return (yield work)


def tried(work: Work) -> Any:
    """Return what some work gives, or what it raises: an encoder's fault is none of the request."""
    try:
        return work()
    except Exception as error:
        return error
