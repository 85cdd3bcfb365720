"""Round trips to a Redis with a short time limit: a fault is a reply like others, never raised.

Several commands go in one write and their replies are read together. The client's own pipeline
does the same in about twice the time of a single command, which a lookup would feel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import hiredis
import redis
import redis.asyncio as aio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from warmup_lib.search import Command

CONNECTIONS = 32
"""Most connections of one reader; further requests wait for one, within their time limit."""

_Gone = (redis.exceptions.ConnectionError, OSError)
_Fault = (RedisError, OSError, TimeoutError)


class AsyncWire:
    """Round trips for asyncio.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
        timeout_s: Longest wait for one round trip, connecting included.

    Attributes:
        epoch: The server's run id, from the newest connection; None: not known.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self.epoch: str | None = None
        self._timeout_s = timeout_s
        self._pool: Any = aio.ConnectionPool.from_url(
            url,
            protocol=2,
            socket_timeout=None,
            socket_connect_timeout=timeout_s,
            retry=AsyncRetry(NoBackoff(), 0),
        )
        self._free: list[Any] = []
        self._turns = asyncio.Semaphore(CONNECTIONS)

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies, in order; an exception for each that failed."""
        packed = _packed(commands)
        try:
            async with asyncio.timeout(self._timeout_s), self._turns:
                if self._free:
                    try:
                        return await self._round(self._free.pop(), packed, len(commands))
                    except _Gone:
                        await self.close()  # the server closed it, and those beside it
                return await self._round(await self._connect(), packed, len(commands))
        except _Fault as error:
            return [error] * len(commands)

    async def close(self) -> None:
        """Close the connections."""
        while self._free:
            await self._free.pop().disconnect(nowait=True)

    async def _connect(self) -> Any:
        connection = self._pool.make_connection()
        await connection.connect()
        [info] = await self._round(connection, _ABOUT, 1)
        self._free.remove(connection)
        self.epoch = _run_id(info)
        return connection

    async def _round(self, connection: Any, packed: list[bytes], count: int) -> list[Any]:
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
        self._free.append(connection)
        return replies


class SyncWire:
    """Round trips for threads: the same, a connection each.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
        timeout_s: Longest wait for one reply.

    Attributes:
        epoch: The server's run id, from the newest connection; None: not known.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self.epoch: str | None = None
        self._pool: Any = redis.ConnectionPool.from_url(
            url,
            protocol=2,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
        )
        self._free: list[Any] = []

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies, in order; an exception for each that failed."""
        packed = _packed(commands)
        try:
            try:
                connection = self._free.pop()
            except IndexError:
                return self._round(self._connect(), packed, len(commands))
            try:
                return self._round(connection, packed, len(commands))
            except _Gone:
                self.close()
                return self._round(self._connect(), packed, len(commands))
        except _Fault as error:
            return [error] * len(commands)

    def close(self) -> None:
        """Close the connections."""
        while self._free:
            self._free.pop().disconnect()

    def _connect(self) -> Any:
        connection = self._pool.make_connection()
        connection.connect()
        [info] = self._round(connection, _ABOUT, 1)
        self._free.remove(connection)
        self.epoch = _run_id(info)
        return connection

    def _round(self, connection: Any, packed: list[bytes], count: int) -> list[Any]:
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
        self._free.append(connection)
        return replies


def _packed(commands: Sequence[Command]) -> list[bytes]:
    """Return the commands as one piece, for each piece of a list is sent by itself."""
    pieces = (hiredis.pack_command(tuple(command)) for command in commands)  # type: ignore[arg-type]
    return [b"".join(pieces)]


_ABOUT = _packed([["INFO", "server"]])


def _run_id(info: Any) -> str | None:
    if not isinstance(info, bytes):  # the login may not ask
        return None
    lines = dict(line.split(b":", 1) for line in info.splitlines() if b":" in line)
    found = lines.get(b"run_id")
    return None if found is None else found.decode()
