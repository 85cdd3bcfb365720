"""A Redis is written with lifetimes, looked at and searched; its refusals have their reasons."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np
import pytest
import redis

from warmup_lib.errors import ConfigError, StoreUnavailable
from warmup_lib.stack.state import StackState
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.store import Entry, RedisStore, Seen, as_store

pytestmark = pytest.mark.stack
T = TypeVar("T")
Use = Callable[[Callable[[RedisStore], Awaitable[T]]], T]


@pytest.fixture
def url(stack_redis: StackState) -> str:
    assert stack_redis.redis is not None
    return stack_redis.redis.url


@pytest.fixture
def client(url: str) -> Any:
    with redis.Redis.from_url(url, protocol=2) as client:
        yield client


@pytest.fixture
def prefix(client: Any) -> Any:
    word = f"test-{uuid.uuid4().hex}"
    yield word
    for key in client.scan_iter(f"{word}*"):
        client.delete(key)


@pytest.fixture
def use(url: str) -> Use[Any]:
    return lambda work: run(url, work)


def run(url: str, work: Callable[[RedisStore], Awaitable[T]], batch: int = 64) -> T:
    async def inside() -> T:
        store = RedisStore("cache", url, timeout_s=5, batch=batch)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(inside())


def vector(*values: float) -> bytes:
    return np.asarray(values, dtype="<f4").tobytes()


def test_epoch_is_the_run_id(use: Use[str], client: Any) -> None:
    assert use(lambda s: s.epoch()) == client.info("server")["run_id"]


def test_facts(use: Use[Any], client: Any) -> None:
    facts = use(lambda s: s.facts())
    info = client.info()
    assert (facts.version, facts.policy) == (info["redis_version"], info["maxmemory_policy"])
    assert facts.search
    assert facts.notes() == ()
    assert facts.used > 0


def test_generation_is_what_was_set_last(use: Use[Any], client: Any) -> None:
    before = client.get("wu1:generation")

    async def work(store: RedisStore) -> list[str | None]:
        await store.set_generation("plan-a")
        first = await store.generation()
        await store.set_generation("plan-b")
        return [first, await store.generation()]

    assert use(work) == ["plan-a", "plan-b"]
    assert client.ttl("wu1:generation") > 29 * 86400
    client.delete("wu1:generation")
    assert use(lambda s: s.generation()) is None
    if before is not None:
        client.set("wu1:generation", before)


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_writes_are_read_back_with_their_lifetime(
    url: str, client: Any, prefix: str, batch: int
) -> None:
    entries = [Entry(f"{prefix}:{n}", vector(n, 1), 100 + n) for n in range(7)]
    entries.append(Entry(f"{prefix}:hash", {"a": "x", "b": b"\x00\xff", "c": 1.5}, 60))
    written = run(url, lambda s: s.write(entries), batch)
    assert [w.ttl_s for w in written] == [100, 101, 102, 103, 104, 105, 106, 60]
    assert [w.bytes for w in written] == [8] * 7 + [9]
    assert client.get(f"{prefix}:3") == vector(3, 1)
    assert client.hgetall(f"{prefix}:hash") == {b"a": b"x", b"b": b"\x00\xff", b"c": b"1.5"}
    assert all(0 < client.ttl(e.key) <= e.ttl_s for e in entries)


def test_one_bad_key_fails_alone_and_quotes_nothing(
    use: Use[Any], client: Any, prefix: str
) -> None:
    client.set(f"{prefix}:string", "taken", ex=60)
    entries = [
        Entry(f"{prefix}:string", {"prompt": "a secret question"}, 60),
        Entry(f"{prefix}:good", {"prompt": "another"}, 60),
    ]
    bad, good = use(lambda s: s.write(entries))
    assert (bad.ttl_s, bad.error) == (None, "it answers WRONGTYPE")
    assert (good.ttl_s, good.error) == (60, None)


def test_a_full_redis_is_unavailable_and_a_batch_is_written_whole_or_not(
    use: Use[Any], client: Any, prefix: str
) -> None:
    entries = [Entry(f"{prefix}:{n}", b"x" * 100, 60) for n in range(5)]
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(StoreUnavailable, match="'cache' is not available: it is full"):
            use(lambda s: s.write(entries))
    finally:
        client.config_set("maxmemory", 0)
    assert client.exists(*[e.key for e in entries]) == 0


def test_looks_tell_absent_from_present(use: Use[Any], client: Any, prefix: str) -> None:
    client.set(f"{prefix}:s", b"12345", ex=50)
    client.set(f"{prefix}:for-ever", b"1")
    client.hset(f"{prefix}:h", mapping={"v": b"1234567", "w": b""})
    client.expire(f"{prefix}:h", 40)
    keys = [f"{prefix}:{n}" for n in ("s", "for-ever", "h", "absent")]
    assert use(lambda s: s.look(keys)) == [Seen(50, 5), Seen(-1, 1), None, None]
    assert use(lambda s: s.look(keys, "v")) == [None, None, Seen(40, 7), None]
    assert use(lambda s: s.look([])) == []


def test_reading_hashes(use: Use[Any], client: Any, prefix: str) -> None:
    client.hset(f"{prefix}:h", mapping={"response": "r", "prompt": "p"})
    client.set(f"{prefix}:s", "x")
    keys = [f"{prefix}:h", f"{prefix}:s", f"{prefix}:absent"]
    found = use(lambda s: s.read(keys, ("response", "metadata")))
    assert found == [{"response": b"r"}, None, None]


def test_a_login_without_search_commands_has_no_search(url: str, client: Any, prefix: str) -> None:
    client.acl_setuser(prefix, enabled=True, passwords=["+pw"], keys=["*"], categories=["+@all"])
    client.execute_command("ACL", "SETUSER", prefix, "-ft._list")
    try:
        facts = run(url.replace("://", f"://{prefix}:pw@"), lambda s: s.facts())
        assert not facts.search
        assert "exact keys only" in facts.notes()[0]
        with pytest.raises(StoreUnavailable, match="refuses the login") as caught:
            run(url.replace("://", f"://{prefix}:wrong@"), lambda s: s.epoch())
        assert "wrong" not in str(caught.value)
    finally:
        client.acl_deluser(prefix)


def test_nobody_there() -> None:
    with pytest.raises(StoreUnavailable, match="'cache' is not available: no connection"):
        run("redis://127.0.0.1:1", lambda s: s.write([Entry("k", b"secret", 1)]))


def test_a_redis_that_hangs_is_given_up() -> None:
    async def work() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        store = RedisStore("cache", f"redis://127.0.0.1:{port}", timeout_s=0.2)
        try:
            with pytest.raises(StoreUnavailable, match="no answer in time"):
                await store.write([Entry("k", b"v", 1)])
        finally:
            await store.close()
            server.close()
            await server.wait_closed()

    asyncio.run(work())


def test_a_host_is_no_redis() -> None:
    with pytest.raises(ConfigError, match="'h' is no Redis"):
        as_store(ModelHost("h", "http://127.0.0.1:1"))
