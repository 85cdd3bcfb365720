"""Compares a lookup of the reader with a bare GET of redis-py, in turn, in one process.

Needs the embedded Redis (`warmup stack up` fetches it), writes bench/reports/reader.md.
Usage: `python -m bench.reader`.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import redis
import redis.asyncio as aio

from bench.encoder import machine, table
from bench.redis_writes import pairs
from tests.reader.relay import Relay
from tests.targets.own_redis import embedded, own_redis
from warmup_lib.config import warmup_home
from warmup_lib.keys import Keys, Request, embedding_text
from warmup_lib.reader import Cache, Reader, SyncReader

REPORT = Path(__file__).parent / "reports" / "reader.md"
DIMENSION = 512
ENTRIES = 1000
LOOKS = 10_000
SEED = 11
SYSTEM = "You answer questions about cards and transfers, in one sentence. " * 20
BOUND = 2.0


@dataclass(frozen=True)
class Timed:
    """Seconds of each call, GET and lookup in turn."""

    name: str
    gets: Sequence[float]
    looks: Sequence[float]

    def row(self) -> list[object]:
        """Return a row of the report."""
        get, look = (np.percentile(np.array(s) * 1e6, [50, 99]) for s in (self.gets, self.looks))
        return [
            self.name,
            *(f"{value:,.0f}" for value in (get[0], look[0])),
            f"{look[0] / get[0]:.2f}",
            *(f"{value:,.0f}" for value in (get[1], look[1])),
            f"{self.ratio:.2f}",
        ]

    @property
    def ratio(self) -> float:
        """P99 of the lookup over that of the GET."""
        return float(np.percentile(self.looks, 99) / np.percentile(self.gets, 99))


def requests(texts: Sequence[str]) -> list[Request]:
    """Return requests as an application makes them: a new object each, its key not yet built."""
    return [Request("acme", "smollm2", text, SYSTEM, params={"temperature": 0.2}) for text in texts]


def fill(cache: Cache, asks: Sequence[Request], answers: Sequence[str]) -> list[str]:
    """Store answers with vectors, and each answer once more for GET; return the keys for GET."""
    drawn = np.random.default_rng(SEED).normal(size=(len(asks), DIMENSION)).astype("<f4")
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    keys = []
    with SyncReader(cache) as reader, redis.Redis.from_url(cache.url) as client:
        for ask, answer, vector in zip(asks, answers, drawn, strict=True):
            assert reader.store(ask, answer, vector.tobytes())
            keys.append(f"plain:{reader.lookup(ask).key}")
            client.set(keys[-1], answer)
    return keys


def synchronous(cache: Cache, texts: Sequence[str], keys: Sequence[str]) -> Timed:
    """Time both with the clients for threads."""
    gets, looks = [], []
    with SyncReader(cache) as reader, redis.Redis.from_url(cache.url) as client:
        for n in range(-200, LOOKS):
            [ask] = requests([texts[n % len(texts)]])
            begun = time.perf_counter()
            client.get(keys[n % len(keys)])
            between = time.perf_counter()
            found = reader.lookup(ask)
            ended = time.perf_counter()
            assert found.match == "exact"
            if n >= 0:
                gets.append(between - begun)
                looks.append(ended - between)
    return Timed("`SyncReader.lookup`", gets, looks)


async def asynchronous(cache: Cache, texts: Sequence[str], keys: Sequence[str]) -> Timed:
    """Time both with the clients for asyncio."""
    gets, looks = [], []
    client = aio.Redis.from_url(cache.url)
    async with Reader(cache) as reader:
        for n in range(-200, LOOKS):
            [ask] = requests([texts[n % len(texts)]])
            begun = time.perf_counter()
            await client.get(keys[n % len(keys)])
            between = time.perf_counter()
            found = await reader.lookup(ask)
            ended = time.perf_counter()
            assert found.match == "exact"
            if n >= 0:
                gets.append(between - begun)
                looks.append(ended - between)
    await client.aclose()
    return Timed("`await Reader.lookup`", gets, looks)


def similar(cache: Cache, texts: Sequence[str]) -> list[float]:
    """Time lookups that an equal request can't serve, their vectors known beforehand."""
    drawn = np.random.default_rng(SEED).normal(size=(len(texts), DIMENSION))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    vectors = {
        embedding_text(f"please: {text}"): vector.tolist()
        for text, vector in zip(texts, drawn, strict=True)
    }
    took = []
    with SyncReader(replace(cache, encode=vectors.get)) as reader:
        for text in [f"please: {text}" for text in texts]:
            [ask] = requests([text])
            begun = time.perf_counter()
            reader.lookup(ask)
            took.append(time.perf_counter() - begun)
    return took


def round_trips(cache: Cache, ask: Request) -> int:
    """Count the round trips of one lookup."""
    with Relay(cache.url) as relay, SyncReader(replace(cache, url=relay.url)) as reader:
        reader.lookup(ask)  # connects
        before = relay.turns
        assert reader.lookup(ask).match == "exact"
        return relay.turns - before


def main() -> None:
    """Run it and write the report."""
    known = pairs()[:ENTRIES]
    texts, answers = [text for text, _ in known], [answer for _, answer in known]
    with (
        tempfile.TemporaryDirectory() as home,
        own_redis(embedded(warmup_home()), Path(home)) as url,
    ):
        keys = Keys(secrets.token_bytes(32))
        cache = Cache(url, keys, "0123456789abcdef", DIMENSION, timeout_s=5)
        plain = fill(cache, requests(texts), answers)
        timed = [synchronous(cache, texts, plain)]
        timed.append(asyncio.run(asynchronous(cache, texts, plain)))
        near = np.percentile(np.array(similar(cache, texts)) * 1e6, [50, 99])
        trips = round_trips(cache, requests(texts)[0])
    head = ["", "GET P50", "lookup P50", "ratio", "GET P99", "lookup P99", "ratio"]
    worst = max(one.ratio for one in timed)
    REPORT.write_text(
        f"""# Looking up

Made by `bench/reader.py`.

{machine()}

Redis 8.2.3 with its search module, redis-py {version("redis")} with hiredis, on loopback beside the
reader; microseconds. {len(texts):,} answers of the shipped sample log; {LOOKS:,} calls each, a bare
`GET` of the answer alone and a lookup in turn, in one process. A lookup builds its keys from the
whole request, reads answer, vector and system prompt in **{trips} round trip**, and gives its
evidence. No telemetry is set up.

{table(head, [one.row() for one in timed])}

P99 of a lookup is at most {worst:.2f} times that of a bare `GET` (bound: {BOUND:.0f}):
**{"kept" if worst <= BOUND else "NOT KEPT"}**.

A question that only a similar one could serve takes {near[0]:,.0f} (P50) and {near[1]:,.0f} (P99)
with its vector at hand, among the {len(texts):,} answers of its tenant: the search goes over all of
them.
""",
        encoding="utf-8",
    )
    print(REPORT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
