"""What the embedded stack has running, kept in `state.json`, and the lock around its changes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from warmup_lib.errors import ConfigError

Progress = Callable[[str], None]
"""Takes one short line for the user."""

ServiceKind = Literal["redis", "vllm"]


class Service(BaseModel):
    """One running server.

    Attributes:
        name: `redis`, `vllm-1`, `vllm-2` ...
        kind: What it is.
        url: Where it listens, on loopback.
        pid: Its process, which leads a session of its own: its children share that session.
        version: What it says it is; empty until it has answered for the first time.
        model: The served model's name; None for Redis.
        log: Its output since its last start (the run before is beside it, as `.previous`).
    """

    model_config = ConfigDict(frozen=True)

    name: str
    kind: ServiceKind
    url: str
    pid: int
    version: str
    model: str | None
    log: Path


class StackState(BaseModel):
    """What runs, and in whole sentences what does not and why.

    Attributes:
        redis: The Redis.
        hosts: The model hosts.
        skipped: What does not run, and why.
        artifacts: Folder of the programs, the model and its adapters; None: the home itself.
    """

    model_config = ConfigDict(frozen=True)

    redis: Service | None = None
    hosts: list[Service] = []
    skipped: list[str] = []
    artifacts: Path | None = None

    @property
    def services(self) -> dict[str, Service]:
        """All services by name."""
        return {s.name: s for s in ([self.redis] if self.redis else []) + self.hosts}


def read_state(home: Path) -> StackState:
    """Return what the last `up` or `down` wrote.

    A file that can't be read counts as an empty one: what runs is found by looking at the
    processes (`process.leaders`), so nothing is lost but the addresses, and `up` starts anew.
    """
    try:
        return StackState.model_validate_json((home / "state.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        return StackState()


def write_state(home: Path, state: StackState) -> None:
    """Replace `state.json` in one step, so that a reader never sees half of it."""
    staged = home / "state.json.new"
    staged.write_text(state.model_dump_json(indent=2) + "\n", encoding="utf-8")
    staged.replace(home / "state.json")


@contextmanager
def exclusive(lock: Path, progress: Progress) -> Iterator[int]:
    """Hold `lock` for the block, waiting where another process has it; gives its descriptor.

    The lock ends with the last process that has the descriptor, so a killed `up` leaves none.

    Raises:
        ConfigError: The lock's folder can't be made or written.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        reason = f"{lock.parent} can't hold the embedded stack: {error.strerror}"
        raise ConfigError(f"{reason}; set WARMUP_HOME to a folder of yours") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that holds {lock}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)
