"""A plan that a Redis has no room for is refused with the numbers before anything is done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.apply.handmade import SECRET, fill, items
from tests.targets.own_redis import embedded, own_redis
from tests.targets.tiny_host import TinyHost, serving
from warmup_lib import pipeline
from warmup_lib.apply.room import judge
from warmup_lib.config import Config
from warmup_lib.errors import BudgetExceeded
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem
from warmup_lib.layers.sizes import embedding_bytes
from warmup_lib.stack.state import StackState
from warmup_lib.targets.store import StoreFacts

DIMENSION = 512
SIZE = embedding_bytes(DIMENSION)
PLANNED = items("embeddings", range(10), 64)  # 256 bytes each


def facts(limit: int, used: int = 0, policy: str = "noeviction") -> StoreFacts:
    return StoreFacts("8.2.3", True, limit, policy, used, 0)


@pytest.mark.parametrize(
    ("limit", "used", "policy", "resident"),
    [
        (0, 10**12, "noeviction", 0),
        (2560, 0, "noeviction", 0),
        (2660, 100, "noeviction", 0),
        (2660, 1124, "noeviction", 4),
        (2560, 2560, "noeviction", 10),
    ],
)
def test_what_fits_is_not_spoken_of(limit: int, used: int, policy: str, resident: int) -> None:
    there = frozenset(item.item_id for item in PLANNED[:resident])
    assert judge("p1", "cache", facts(limit, used, policy), PLANNED, there) == []


@pytest.mark.parametrize(
    ("limit", "used", "policy", "resident", "needed"),
    [
        (2559, 0, "noeviction", 0, "2,560"),
        (2660, 101, "noeviction", 0, "2,560"),
        (2660, 1125, "noeviction", 4, "1,536"),
        (2559, 0, "allkeys-lru", 0, "2,560"),
        (2559, 2559, "volatile-ttl", 10, "0"),  # what is there already is part of the plan too
    ],
)
def test_what_does_not_fit_is_refused_with_the_numbers(
    limit: int, used: int, policy: str, resident: int, needed: str
) -> None:
    there = frozenset(item.item_id for item in PLANNED[:resident])
    with pytest.raises(BudgetExceeded) as caught:
        judge("p1", "cache", facts(limit, used, policy), PLANNED, there)
    assert str(caught.value) == (
        f"plan p1 does not fit target 'cache': it needs {needed} bytes more, {used:,} are used, "
        f"the limit is {limit:,}, the policy {policy}; nothing was written; raise maxmemory, or "
        "plan fewer items (layers.*.items)"
    )


@pytest.mark.parametrize(
    ("used", "told"),
    [
        (0, "target 'cache' may evict what is warmed when it gets full: its policy is allkeys-lru"),
        (
            2500,
            "target 'cache' will evict keys, perhaps of this plan: it needs 2,560 bytes more, "
            "2,500 are used, the limit is 2,600, the policy allkeys-lru",
        ),
    ],
)
def test_a_redis_that_evicts_is_warned_of(used: int, told: str) -> None:
    assert judge("p1", "cache", facts(2600, used, "allkeys-lru"), PLANNED, frozenset()) == [told]


# -- on a real Redis ---------------------------------------------------------------------------


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)
    return Lake(f"file://{tmp_path}/lake")


@pytest.fixture
def small(
    stack_redis: StackState, stack_artifacts: Path, tmp_path: Path
) -> Iterator[tuple[str, Any]]:
    """A Redis whose limit is 6 MB above what it uses when empty; its URL and a client."""
    assert stack_redis.redis is not None  # so that its programs are there
    with (
        own_redis(embedded(stack_artifacts), tmp_path) as url,
        redis.Redis.from_url(url) as client,
    ):
        client.config_set("maxmemory", int(client.info("memory")["used_memory"]) + 6_000_000)
        yield url, client


def planned(lake: Lake, layer: str, count: int, size: int, **changes: Any) -> list[PlanItem]:
    made = [replace(i, bytes=size, **changes) for i in items(layer, range(count), DIMENSION)]
    fill(lake, made, range(count), DIMENSION)
    return made


def config(lake: Lake, url: str, *more: dict[str, Any]) -> Config:
    targets = [{"kind": "redis", "name": "cache", "url": url}, *more]
    return Config.model_validate({"lake": lake.uri, "targets": targets})


@pytest.mark.stack
def test_a_plan_larger_than_the_limit_is_refused_before_any_write_or_host_work(
    lake: Lake, small: tuple[str, Any]
) -> None:
    url, client = small
    planned(lake, "responses", 1000, 7000, response=None)
    with serving(TinyHost()) as host:
        one = {"kind": "host", "name": "gpu", "url": host.url}
        with pytest.raises(BudgetExceeded, match="it needs 7,000,000 bytes more") as caught:
            pipeline.apply(config(lake, url, one), "p1")
        assert host.requests == []
    assert caught.value.exit_code == 1
    assert client.dbsize() == 0
    assert client.execute_command("FT._LIST") == []
    assert lake.manifest("receipts", {"plan_id": "p1"}) is None


@pytest.mark.stack
def test_what_is_there_already_needs_no_room(lake: Lake, small: tuple[str, Any]) -> None:
    url, client = small
    planned(lake, "embeddings", 1500, SIZE)
    pipeline.apply(config(lake, url), "p1")
    used = int(client.info("memory")["used_memory"])
    client.config_set("maxmemory", used + 1200 * SIZE)  # too little for all of it once more
    assert pipeline.apply(config(lake, url), "p1").facts["warmed"] == 1500


def overflow(client: Any, word: str) -> None:
    """Write keys of others until Redis has evicted as many as there is room for."""
    pipe = client.pipeline(transaction=False)
    for number in range(4000):
        pipe.set(f"{word}:{number}", b"x" * 2048)
    pipe.execute()


def evidence(lake: Lake) -> Sequence[str]:
    rows = lake.read("residency", {"plan_id": "p1"}).to_pylist()
    return [row["evidence"] for row in rows if not row["resident"]]


@pytest.mark.stack
def test_a_full_redis_that_evicts_is_written_to_and_what_it_evicted_is_reported(
    lake: Lake, small: tuple[str, Any]
) -> None:
    url, client = small
    client.config_set("maxmemory-policy", "allkeys-lru")
    overflow(client, "before")
    evicted_before = client.info("stats")["evicted_keys"]
    assert evicted_before > 0
    planned(lake, "embeddings", 500, SIZE)
    applied = pipeline.apply(config(lake, url), "p1")
    assert any("will evict keys, perhaps of this plan" in note for note in applied.notes)
    resident = pipeline.verify(config(lake, url), "p1").facts
    lost = resident["evicted"].get("cache", {}).get("embeddings", 0)
    overflow(client, "after")
    verified = pipeline.verify(config(lake, url), "p1")
    found = verified.facts["evicted"]["cache"]["embeddings"]
    assert found > lost
    told, *others = sorted(set(evidence(lake)), reverse=True)
    assert set(others) <= {"absent"}  # gone before its lifetime was read back: not warmed at all
    assert evidence(lake).count(told) == found
    rose = re.fullmatch(
        r"absent: written, then evicted \(evicted_keys rose by (\d+) since the apply\)", told
    )
    assert rose
    assert found <= int(rose[1]) <= client.info("stats")["evicted_keys"] - evicted_before
    assert any(f"'cache' evicted {found} entries of this plan" in note for note in verified.notes)
    assert json.dumps(verified.facts["evicted"])


@pytest.mark.stack
def test_what_was_deleted_or_lost_at_a_restart_was_not_evicted(
    lake: Lake, small: tuple[str, Any]
) -> None:
    url, client = small
    planned(lake, "embeddings", 10, SIZE)
    pipeline.apply(config(lake, url), "p1")
    client.delete(next(client.scan_iter("wu1:*:embeddings:*")))
    verified = pipeline.verify(config(lake, url), "p1").facts
    assert verified["evicted"] == {}
    assert evidence(lake) == ["absent: written, then deleted (nothing was evicted since the apply)"]
