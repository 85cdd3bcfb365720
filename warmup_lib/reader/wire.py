"""Round trips to a Redis with a short time limit: a fault is a reply like others, never raised.

Several commands go in one write and their replies are read together. The client's own pipeline
does the same in about twice the time of a single command, which a lookup would feel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import hiredis
import redis
import redis.asyncio as aio
from redis.asyncio.connection import parse_url as async_parse_url
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import ResponseError
from redis.retry import Retry

from warmup_lib.search import Command

CONNECTIONS = 32
"""Most connections of one reader; further requests wait for one, within their time limit."""

_Gone = (redis.exceptions.ConnectionError, OSError)


@dataclass(frozen=True)
class _Lane:
    """The idle connections of one event loop, in which alone they can be used."""

    free: list[Any] = field(default_factory=list)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONNECTIONS))


class AsyncWire:
    """Round trips for asyncio.

    Args:
        url: `redis://`, `rediss://` or `unix://`; it can't change how replies are read.
        timeout_s: Longest wait for one round trip, connecting included.

    Attributes:
        epoch: The server's run id, from the newest connection; None: not known.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self.epoch: str | None = None
        self._timeout_s = timeout_s
        limits = {"socket_timeout": None, "socket_connect_timeout": timeout_s}
        ours: dict[str, Any] = _READ | limits | {"retry": AsyncRetry(NoBackoff(), 0)}
        options: dict[str, Any] = dict(async_parse_url(url))
        self._pool: Any = aio.ConnectionPool(**options | ours)
        self._lanes: dict[asyncio.AbstractEventLoop, _Lane] = {}

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies, in order; an exception for each that failed."""
        try:
            packed, lane = _packed(commands), self._lane()
            async with asyncio.timeout(self._timeout_s), lane.turns:
                if lane.free:
                    try:
                        return await self._round(lane, lane.free.pop(), packed, len(commands))
                    except _Gone:
                        await self.close()  # the server closed it, and those beside it
                connection = await self._connect()
                return await self._round(lane, connection, packed, len(commands))
        except Exception as error:
            return [error] * len(commands)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        lane = self._lane()
        while lane.free:
            await lane.free.pop().disconnect(nowait=True)

    def _lane(self) -> _Lane:
        loop = asyncio.get_running_loop()
        lane = self._lanes.get(loop)
        if lane is None:
            for ended in [one for one in list(self._lanes) if one.is_closed()]:
                self._lanes.pop(ended, None)
            lane = self._lanes.setdefault(loop, _Lane())
        return lane

    async def _connect(self) -> Any:
        connection = self._pool.make_connection()
        await connection.connect()
        [info] = await self._replies(connection, _ABOUT, 1)
        self.epoch = _run_id(info)
        return connection

    async def _round(
        self, lane: _Lane, connection: Any, packed: list[bytes], count: int
    ) -> list[Any]:
        replies = await self._replies(connection, packed, count)
        lane.free.append(connection)
        return replies

    async def _replies(self, connection: Any, packed: list[bytes], count: int) -> list[Any]:
        replies: list[Any] = []
        try:
            await connection.send_packed_command(packed, check_health=False)
            for _ in range(count):
                try:
                    replies.append(await connection.read_response(disconnect_on_error=False))
                except ResponseError as error:
                    replies.append(error)
        except BaseException:
            await connection.disconnect(nowait=True)  # a late reply must reach nobody else
            raise
        return replies


class SyncWire:
    """Round trips for threads: the same, a connection each.

    Args:
        url: `redis://`, `rediss://` or `unix://`; it can't change how replies are read.
        timeout_s: Longest wait for one reply.

    Attributes:
        epoch: The server's run id, from the newest connection; None: not known.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self.epoch: str | None = None
        limits = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
        ours: dict[str, Any] = _READ | limits | {"retry": Retry(NoBackoff(), 0)}
        options = parse_url(url)  # type: ignore[no-untyped-call]
        self._pool: Any = redis.ConnectionPool(**options | ours)
        self._free: list[Any] = []

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies, in order; an exception for each that failed."""
        try:
            packed = _packed(commands)
            try:
                connection = self._free.pop()
            except IndexError:
                return self._round(self._connect(), packed, len(commands))
            try:
                return self._round(connection, packed, len(commands))
            except _Gone:
                self.close()
                return self._round(self._connect(), packed, len(commands))
        except Exception as error:
            return [error] * len(commands)

    def close(self) -> None:
        """Close the connections."""
        with suppress(IndexError):  # of two threads that close, one finds none left
            while True:
                self._free.pop().disconnect()

    def _connect(self) -> Any:
        connection = self._pool.make_connection()
        connection.connect()
        [info] = self._replies(connection, _ABOUT, 1)
        self.epoch = _run_id(info)
        return connection

    def _round(self, connection: Any, packed: list[bytes], count: int) -> list[Any]:
        replies = self._replies(connection, packed, count)
        self._free.append(connection)
        return replies

    def _replies(self, connection: Any, packed: list[bytes], count: int) -> list[Any]:
        replies: list[Any] = []
        try:
            connection.send_packed_command(packed, check_health=False)
            for _ in range(count):
                try:
                    replies.append(connection.read_response(disconnect_on_error=False))
                except ResponseError as error:
                    replies.append(error)
        except BaseException:
            connection.disconnect()
            raise
        return replies


def _packed(commands: Sequence[Command]) -> list[bytes]:
    """Return the commands as one piece, for each piece of a list is sent by itself."""
    pieces = (hiredis.pack_command(tuple(command)) for command in commands)  # type: ignore[arg-type]
    return [b"".join(pieces)]


_READ = {"protocol": 2, "decode_responses": False}
_ABOUT = _packed([["INFO", "server"]])


def _run_id(info: Any) -> str | None:
    if not isinstance(info, bytes):  # the login may not ask
        return None
    lines = dict(line.split(b":", 1) for line in info.splitlines() if b":" in line)
    found = lines.get(b"run_id")
    return None if found is None else found.decode()
