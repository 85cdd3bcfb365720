"""Compares how fast answers and vectors are written: ours, a bare pipeline, a loop of RedisVL.

Needs the embedded Redis (`warmup stack up` fetches it), writes bench/reports/redis-writes.md.
Usage: `python -m bench.redis_writes`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
import redis

from bench.encoder import machine, table
from samples.generate import generate
from samples.shipped import Shipped
from tests.targets.own_redis import embedded, own_redis
from warmup_lib.config import ApplyConfig, warmup_home
from warmup_lib.guard import tag
from warmup_lib.targets.nearby import ensure_answer_index
from warmup_lib.targets.store import Entry, RedisStore, batched

REPORT = Path(__file__).parent / "reports" / "redis-writes.md"
COUNT = 5000
LOOP = 1000
"""Entries of the slow writer, whose rate does not depend on how many there are."""
ROUNDS = 9
DIMENSION = 512
BATCH = ApplyConfig().batch
INDEX = "wu1:bench:responses:enc"
TTL_S = 172_800
SEED = 7

Writer = Callable[[str, Sequence[Entry]], float]
"""Writes entries to a Redis and returns the seconds that it took."""


def vectors() -> list[Entry]:
    """Return entries of the layer embeddings."""
    return [
        Entry(f"wu1:bench:embeddings:enc:{n:032x}", raw, TTL_S) for n, raw in enumerate(drawn())
    ]


def answers() -> list[Entry]:
    """Return entries of the layer responses: questions and answers of the shipped sample log."""
    entries = []
    for n, ((prompt, response), raw) in enumerate(zip(cycle(pairs()), drawn(), strict=False)):
        fields: dict[str, bytes | str | float] = {
            "entry_id": f"place:{n:032x}",
            "prompt": prompt,
            "response": response,
            "prompt_vector": raw,
            "inserted_at": 1_800_000_000.0,
            "updated_at": 1_800_000_000.0,
            "metadata": json.dumps({"item_id": f"responses-{n:024x}", "plan_id": "plan"}),
            "context": f"{n % 50:032x}",
            "signature": tag(prompt),
        }
        entries.append(Entry(f"{INDEX}:place:{n:032x}", fields, TTL_S))
    return entries


def pairs() -> list[tuple[str, str]]:
    """Return distinct questions with their answers, of a small sample log in a fixed order."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), Shipped(), days=2, scale=0.5)
        for file in sorted(Path(folder).glob("requests-*.jsonl.gz")):
            for line in gzip.decompress(file.read_bytes()).splitlines():
                row = json.loads(line)
                if row.get("response"):
                    found[row["prompt"]] = row["response"]
    return list(found.items())


def drawn() -> list[bytes]:
    """Return vectors as entries hold them."""
    made = np.random.default_rng(SEED).normal(size=(COUNT, DIMENSION)).astype("<f4")
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return [vector.tobytes() for vector in made]


# -- writers -----------------------------------------------------------------------------------


def ours(read_back: bool) -> Writer:
    """Return the planner's own writer, with or without the lifetimes read back."""

    def write(url: str, entries: Sequence[Entry]) -> float:
        async def inside() -> float:
            store = RedisStore("bench", url, batch=BATCH)
            await store.epoch()  # connected
            begun = time.perf_counter()
            await (store.write(entries) if read_back else store.put(entries))
            seconds = time.perf_counter() - begun
            await store.close()
            return seconds

        return asyncio.run(inside())

    return write


def bare(batch: int, *, transaction: bool | None = None) -> Writer:
    """Return a pipeline of redis-py with hiredis; a transaction where ours is one, or as told."""

    def write(url: str, entries: Sequence[Entry]) -> float:
        with redis.Redis.from_url(url, protocol=2) as client:
            client.ping()
            begun = time.perf_counter()
            for part in batched(entries, batch):
                hashes = not isinstance(part[0].value, bytes)
                together = hashes if transaction is None else transaction
                with client.pipeline(transaction=together) as pipe:
                    for entry in part:
                        if isinstance(entry.value, bytes):
                            pipe.set(entry.key, entry.value, ex=entry.ttl_s)
                        else:
                            pipe.hset(entry.key, mapping=dict(entry.value))
                            pipe.expire(entry.key, entry.ttl_s)
                    pipe.execute()
            return time.perf_counter() - begun

    return write


def redisvl(url: str, entries: Sequence[Entry]) -> float:
    """Store answer after answer, each with its vector given."""
    from redisvl.extensions.cache.llm import SemanticCache
    from redisvl.utils.vectorize import CustomVectorizer

    names = ("context", "signature")
    cache = SemanticCache(
        name=INDEX,
        vectorizer=CustomVectorizer(embed=lambda *_, **__: [0.0] * DIMENSION),
        filterable_fields=[{"name": name, "type": "tag"} for name in names],
        redis_url=url,
        ttl=TTL_S,
    )
    plain = [dict(entry.value) for entry in entries if not isinstance(entry.value, bytes)]
    asked = [np.frombuffer(one["prompt_vector"], "<f4").tolist() for one in plain]
    begun = time.perf_counter()
    for one, vector in zip(plain, asked, strict=True):
        filters = {name: one[name] for name in names}
        metadata = json.loads(one["metadata"])
        cache.store(one["prompt"], one["response"], vector, metadata=metadata, filters=filters)
    seconds = time.perf_counter() - begun
    cache.disconnect()
    return seconds


# -- measuring ---------------------------------------------------------------------------------


def empty(url: str) -> None:
    """Empty the Redis and create the index anew."""

    async def index() -> None:
        store = RedisStore("bench", url)
        await ensure_answer_index(store, INDEX, DIMENSION)
        await store.close()

    with redis.Redis.from_url(url) as client:
        client.flushall()
    asyncio.run(index())


def measured(
    url: str, writers: dict[str, Writer], entries: Sequence[Entry]
) -> dict[str, list[float]]:
    """Return entries a second by writer, one figure a round; writers take turns in each round."""
    rates: dict[str, list[float]] = {name: [] for name in writers}
    for number in range(ROUNDS + 1):
        print(f"round {number} of {ROUNDS}", file=sys.stderr, flush=True)
        order = list(writers) if number % 2 else list(reversed(writers))
        for name in order:
            part = entries[:LOOP] if writers[name] is redisvl else entries
            empty(url)
            seconds = writers[name](url, part)
            if number:  # the first round warms up
                rates[name].append(len(part) / seconds)
    return rates


def rows(rates: dict[str, list[float]], own: str) -> list[list[object]]:
    """Return a row a writer: median rate, and the median over the rounds of ours against it."""
    mine = np.array(rates[own])
    return [
        [
            name,
            f"{np.median(found):,.0f}",
            f"{min(found):,.0f} to {max(found):,.0f}",
            f"{np.median(mine / np.array(found)):.2f}",
        ]
        for name, found in rates.items()
    ]


def main() -> None:
    """Write the report."""
    own, head = "ours (`RedisStore.put`)", ["writer", "entries/s, median", "range", "ours / it"]
    writers = {
        own: ours(read_back=False),
        f"bare pipeline, the same commands in batches of {BATCH}": bare(BATCH),
        f"bare pipeline, no transaction, batches of {BATCH}": bare(BATCH, transaction=False),
        "bare pipeline, no transaction, batches of 500": bare(500, transaction=False),
        "ours with each lifetime read back (`RedisStore.write`)": ours(read_back=True),
    }
    loop = {"a loop of RedisVL `SemanticCache.store()`": redisvl}
    with tempfile.TemporaryDirectory() as folder:
        program = embedded(warmup_home())
        with own_redis(program, Path(folder)) as url:
            vector_rates = measured(url, writers, vectors())
            answer_rates = measured(url, writers | loop, answers())
            with redis.Redis.from_url(url) as client:
                version = client.info("server")["redis_version"]
    texts = [e.value for e in answers() if not isinstance(e.value, bytes)]
    asked, told = (
        int(np.median([len(str(one[name])) for one in texts])) for name in ("prompt", "response")
    )
    text = [
        "# Writing to Redis\n\nMade by `bench/redis_writes.py`.",
        machine(),
        f"Redis {version} with its search module, redis-py {redis.__version__} with hiredis, on "
        f"loopback beside the writer. {COUNT:,} entries (RedisVL: {LOOP:,}), vectors of "
        f"{DIMENSION} dimensions, {ROUNDS} rounds in one run; in each round all writers take turns "
        "on an empty Redis. *ours / it* is the median over the rounds of the ratio inside a round.",
        "## Vectors (layer `embeddings`): `SET key value EX ttl`",
        table(head, rows(vector_rates, own)),
        "## Answers (layer `responses`): `HSET` of nine fields and `EXPIRE`, in the search index"
        "\n\n"
        f"Questions and answers of the shipped sample log, {asked} and {told} characters (median). "
        "Ours sends each batch as a transaction, so that a broken connection leaves no key without "
        "a lifetime. RedisVL gets each vector with the call, so that it encodes nothing.",
        table(head, rows(answer_rates, own)),
    ]
    REPORT.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
