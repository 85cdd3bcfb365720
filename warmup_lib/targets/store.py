"""A Redis that gets warm: batched writes with their lifetime read back, and looks."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import hiredis
import redis.asyncio as aio
from redis import exceptions as errors
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from warmup_lib.errors import ConfigError, StoreUnavailable
from warmup_lib.keys import KEY_VERSION
from warmup_lib.search import Command
from warmup_lib.targets.base import Target, TargetKind

GENERATION_KEY = f"{KEY_VERSION}:generation"
EVICTED_KEYS = "evicted_keys"
"""Under this word the receipts of a plan keep how many keys each Redis had evicted before."""

GENERATION_TTL_S = 30 * 86400
CONNECT_TIMEOUT_S = 5.0

_REFUSALS: tuple[tuple[type[Exception], str], ...] = (
    (errors.AuthenticationError, "it refuses the login"),
    (errors.NoPermissionError, "the login may not run a command that is needed"),
    (errors.OutOfMemoryError, "it is full (maxmemory) and its policy evicts nothing"),
    (errors.ReadOnlyError, "it is a read-only replica"),
    (errors.BusyLoadingError, "it is still loading its data"),
    (errors.TimeoutError, "no answer in time"),
    (TimeoutError, "no answer in time"),
    (errors.ConnectionError, "no connection"),
    (errors.ExecAbortError, "it refuses the write"),
    (OSError, "no connection"),
)
"""What makes the whole store unusable, most special first. The words of the server are not
repeated: they can quote the command with its values."""

_GONE = -2
_MISCONFIGURED = ("MISCONF", "MASTERDOWN", "NOREPLICAS")

Value = bytes | Mapping[str, bytes | str | float]
T = TypeVar("T")


@dataclass(frozen=True)
class StoreFacts:
    """What a Redis says of itself.

    Attributes:
        version: Server version.
        search: It has the search module, so that similar prompts can be found.
        maxmemory: Memory limit in bytes; 0: none.
        policy: What it evicts when full.
        used: Memory used, in bytes.
        evicted: Keys that it dropped for want of memory since it was started.
    """

    version: str
    search: bool
    maxmemory: int
    policy: str
    used: int
    evicted: int

    def notes(self) -> tuple[str, ...]:
        """Return sentences on what this Redis can't do."""
        if self.search:
            return ()
        return ("no search module: exact keys only, similar prompts are not found",)


@dataclass(frozen=True)
class Entry:
    """One key to write: a string (bytes) or a hash (fields), always with a lifetime."""

    key: str
    value: Value
    ttl_s: int


@dataclass(frozen=True)
class Written:
    """What became of one entry: the lifetime read back after the write, or why it failed."""

    key: str
    bytes: int
    ttl_s: int | None
    error: str | None = None


@dataclass(frozen=True)
class Seen:
    """What looking at one key showed: lifetime in seconds (-1: for ever) and size in bytes."""

    ttl_s: int
    bytes: int


class _Packing:
    """Packs commands in C, as the client's synchronous connections do: half the time of a write."""

    def pack_command(self, *args: Any) -> list[bytes]:
        return [hiredis.pack_command(args)]


class RedisStore:
    """A Redis, by its URL. Nothing is sent before the first call.

    Args:
        name: The configured name.
        url: `redis://`, `rediss://` or `unix://`; login and TLS settings in the URL.
        timeout_s: Longest wait for one round trip.
        batch: Most entries written, or keys asked for, in one round trip.

    Raises:
        ValueError: The URL has another scheme.
    """

    kind: TargetKind = "redis"

    def __init__(self, name: str, url: str, *, timeout_s: float = 60.0, batch: int = 64) -> None:
        self.name = name
        self._batch = batch
        self._timeout_s = timeout_s
        self._search: bool | None = None
        # One immediate reconnect covers a connection that the server closed while idle; waits
        # between tries belong to the caller. Protocol 2 keeps search replies in one shape. The
        # client's own time limit is set anew for each reply of a pipeline, which takes a third of
        # the time that writing takes; ours is one for the whole round trip.
        self._redis: Any = aio.from_url(
            url,
            protocol=2,
            socket_timeout=None,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),
        )
        pool = self._redis.connection_pool
        pool.connection_class = type("Packing", (_Packing, pool.connection_class), {})

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def epoch(self) -> str:
        """Return the server's run id, which is drawn at every start."""
        async with self._answering():
            return str((await self._redis.info("server"))["run_id"])

    async def facts(self) -> StoreFacts:
        """Return version, abilities and memory."""
        async with self._answering():
            info = await self._redis.info()
        return StoreFacts(
            version=str(info["redis_version"]),
            search=await self.has_search(),
            maxmemory=int(info.get("maxmemory", 0)),
            policy=str(info.get("maxmemory_policy", "noeviction")),
            used=int(info["used_memory"]),
            evicted=int(info.get("evicted_keys", 0)),
        )

    async def has_search(self) -> bool:
        """Return whether the search module answers; asked once."""
        if self._search is None:
            async with self._answering():
                try:
                    await self._redis.execute_command("FT._LIST")
                    self._search = True
                except errors.NoPermissionError:
                    self._search = False
                except errors.ResponseError as error:
                    if "unknown command" not in str(error).lower():
                        raise
                    self._search = False
        return self._search

    # -- generation ------------------------------------------------------------------------------

    async def set_generation(self, plan_id: str) -> None:
        """Record the plan that owns this store from now on."""
        async with self._answering():
            await self._redis.set(GENERATION_KEY, plan_id, ex=GENERATION_TTL_S)

    async def generation(self) -> str | None:
        """Return the plan that owns this store; None: no plan was applied for a month."""
        async with self._answering():
            value = await self._redis.get(GENERATION_KEY)
        return None if value is None else value.decode()

    # -- entries ---------------------------------------------------------------------------------

    async def write(self, entries: Sequence[Entry]) -> list[Written]:
        """Write entries batch by batch, then read each lifetime back; one result each, in order.

        Raises:
            StoreUnavailable: No answer, or it refuses writes. Batches before it are written.
        """
        put = await self.put(entries)
        ttls = await self._each([["TTL", entry.key] for entry in entries])
        return [_written(*one) for one in zip(entries, put, ttls, strict=True)]

    async def put(self, entries: Sequence[Entry]) -> list[Exception | None]:
        """Write entries batch by batch without looking again; why each failed, in order.

        A batch with hashes is a transaction, so that a connection that breaks half-way can't leave
        a key without a lifetime.

        Raises:
            StoreUnavailable: No answer, or it refuses writes. Batches before it are written.
        """
        failed: list[Exception | None] = []
        for batch in batched(entries, self._batch):
            commands = [_commands(entry) for entry in batch]
            flat = [command for several in commands for command in several]
            replies = iter(await self._round(flat, len(flat) > len(batch)))
            for several in commands:
                got = [next(replies) for _ in several]
                failed.append(next((g for g in got if isinstance(g, Exception)), None))
        return failed

    async def look(self, keys: Sequence[str], hash_field: str | None = None) -> list[Seen | None]:
        """Return what is under each key; None: nothing, or not the expected kind of value.

        Args:
            keys: The keys.
            hash_field: Give the size of this field of a hash; None: the keys hold strings.
        """
        size = ["STRLEN"] if hash_field is None else ["HSTRLEN"]
        tail = [] if hash_field is None else [hash_field]
        commands: list[Command] = [c for k in keys for c in (["TTL", k], [*size, k, *tail])]
        replies = await self._each(commands)
        seen: list[Seen | None] = []
        for ttl, length in zip(replies[::2], replies[1::2], strict=True):
            absent = isinstance(ttl, Exception) or isinstance(length, Exception) or ttl == _GONE
            seen.append(None if absent else Seen(int(ttl), int(length)))
        return seen

    async def read(
        self, keys: Sequence[str], fields: Sequence[str]
    ) -> list[Mapping[str, bytes] | None]:
        """Return fields of hashes; None where the key or its first field is absent."""
        replies = await self._each([["HMGET", key, *fields] for key in keys])
        return [
            None
            if isinstance(reply, Exception) or reply[0] is None
            else {f: v for f, v in zip(fields, reply, strict=True) if v is not None}
            for reply in replies
        ]

    # -- helpers ---------------------------------------------------------------------------------

    async def run(self, commands: Sequence[Command], *, atomic: bool = False) -> list[Any]:
        """Run commands for the modules beside this one, in batches or as one transaction.

        Raises:
            StoreUnavailable: No answer, or it refuses one of them.
        """
        replies = await (self._round(commands, True) if atomic else self._each(commands))
        async with self._answering():
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
        return replies

    async def _each(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands that read, batch by batch."""
        replies: list[Any] = []
        for batch in batched(commands, self._batch):
            replies += await self._round(batch, False)
        return replies

    async def _round(self, commands: Sequence[Command], transaction: bool) -> list[Any]:
        """Run commands in one round trip; a reply is an exception where its command failed."""
        async with self._answering():
            async with self._redis.pipeline(transaction=transaction) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                replies = list(await pipe.execute(raise_on_error=False))
            for reply in replies:
                if isinstance(reply, Exception) and _refusal(reply):
                    raise reply
        return replies

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except (errors.RedisError, OSError) as error:
            raise StoreUnavailable(self.name, _refusal(error) or _short(error)) from None


def as_store(target: Target) -> RedisStore:
    """Return the target as a Redis.

    Raises:
        ConfigError: It is no Redis.
    """
    if not isinstance(target, RedisStore):
        raise ConfigError(f"target '{target.name}' is no Redis")
    return target


def batched(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the things in runs of at most `size`."""
    for start in range(0, len(things), size):
        yield things[start : start + size]


def _commands(entry: Entry) -> list[Command]:
    if isinstance(entry.value, bytes):
        return [["SET", entry.key, entry.value, "EX", entry.ttl_s]]
    pairs = [part for named in entry.value.items() for part in named]
    return [["HSET", entry.key, *pairs], ["EXPIRE", entry.key, entry.ttl_s]]


def _written(entry: Entry, error: Exception | None, ttl: Any) -> Written:
    if failed := error or (ttl if isinstance(ttl, Exception) else None):
        return Written(entry.key, 0, None, _short(failed))
    if ttl == _GONE:
        return Written(
            entry.key, 0, None, "it was gone at once: evicted for want of memory, or deleted"
        )
    return Written(entry.key, _size(entry.value), int(ttl))


def _size(value: Value) -> int:
    if isinstance(value, bytes):
        return len(value)
    return sum(
        len(name) + len(part if isinstance(part, bytes) else str(part).encode())
        for name, part in value.items()
    )


def _refusal(error: Exception) -> str | None:
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "no connection: TLS fails, its certificate is not trusted"
    for kind, reason in _REFUSALS:
        if isinstance(error, kind):
            return reason
    if str(error).startswith(_MISCONFIGURED):
        return "it accepts no writes now"
    return None


def _short(error: Exception) -> str:
    """Return the server's error code, never its text, which can quote values."""
    code = str(error).split(" ", 1)[0]
    return f"it answers {code}" if code.isupper() and code.isalpha() else type(error).__name__
