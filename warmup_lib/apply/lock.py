"""Locks in the lake: one process at a time warms a target or writes a plan's receipts.

A lock is a file made exclusively, with its owner and an expiry inside. It is taken over when it
has expired or when its owner is a dead process of this machine, so that a killed run never blocks
the next one. A lock keeps honest writers apart; what stops a stale one that woke up after its
lock was taken over is the generation on the target.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
import uuid
from dataclasses import asdict, dataclass
from urllib.parse import quote

import psutil

from warmup_lib.errors import WarmupError
from warmup_lib.lake import Lake

LEASE_S = 60.0
"""How long a lock is believed without being renewed, where its owner can't be looked at."""
_POLL_S = 0.02
_TORN_S = 1.0


class Locked(WarmupError):
    """Another process holds the lock. Airflow may retry: it is released when that one ends."""

    exit_code = 1


@dataclass(frozen=True)
class Owner:
    """Who holds a lock, and until when (epoch seconds) without renewal."""

    token: str
    host: str
    pid: int
    started: float
    expires: float

    def is_gone(self, now: float) -> bool:
        """Return whether the lock may be taken over."""
        if now >= self.expires:
            return True
        if self.host != socket.gethostname():
            return False
        try:
            return bool(psutil.Process(self.pid).create_time() != self.started)
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class LakeLock:
    """One named lock, used as an async context manager; renews itself while it is held.

    Args:
        lake: Where the lock's file is, under `_locks/`.
        name: What is locked, such as `target-cache`.
        wait_s: How long to wait for another owner before giving up.

    Raises:
        Locked: On entry: another process still held it after `wait_s` seconds.
    """

    def __init__(self, lake: Lake, name: str, wait_s: float = 0.0) -> None:
        self._fs = lake.fs
        self._folder = f"{lake.root}/_locks"
        self._file = f"{self._folder}/{quote(name, safe='')}.json"
        self._name = name
        self._wait_s = wait_s
        self._token = uuid.uuid4().hex
        self._renewal: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LakeLock:
        await asyncio.to_thread(self._acquire)
        self._renewal = asyncio.create_task(self._renew())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        self._release()

    def _acquire(self) -> None:
        self._fs.makedirs(self._folder, exist_ok=True)
        begun = time.monotonic()
        while not self._create():
            owner = self._owner()
            waited = time.monotonic() - begun
            if owner is None:
                # Being written or just released; one that stays unreadable was left by a killed
                # process between making the file and filling it.
                if waited > _TORN_S:
                    self._remove()
            elif owner.is_gone(time.time()):
                self._remove()
                continue
            elif waited >= self._wait_s:
                raise Locked(f"{self._name} is in use by {owner}; wait for it or stop it")
            time.sleep(_POLL_S)

    def _create(self) -> bool:
        try:
            with self._fs.open(self._file, "xb") as out:
                out.write(self._body())
        except FileExistsError:
            return False
        return True

    def _body(self) -> bytes:
        me = psutil.Process()
        owner = Owner(
            self._token, socket.gethostname(), me.pid, me.create_time(), time.time() + LEASE_S
        )
        return json.dumps(asdict(owner)).encode()

    def _owner(self) -> Owner | None:
        try:
            return Owner(**json.loads(self._fs.cat_file(self._file)))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 3)
            owner = await asyncio.to_thread(self._owner)
            if owner is not None and owner.token == self._token:
                await asyncio.to_thread(self._fs.pipe_file, self._file, self._body())

    def _release(self) -> None:
        owner = self._owner()
        if owner is not None and owner.token == self._token:
            self._remove()

    def _remove(self) -> None:
        try:
            self._fs.rm_file(self._file)
        except FileNotFoundError:
            return
