"""The report of the strategies gives what was measured and the shares that follow from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import strategies
from bench.strategies import total, write

if TYPE_CHECKING:
    import pytest


def part(plan_s: float, apply_s: float, done: int, already: int) -> dict[str, Any]:
    counts = {"planned": done + already, "done": done, "already": already}
    counts |= {"skipped": 0, "failed": 0, "missing": 0}
    return {
        "commit": "abc1234",
        "plan_s": plan_s,
        "apply_s": apply_s,
        "completion": {"prefixes": {"vllm-1": counts}},
        "layers": {"prefixes": {"vllm-1": {"seconds": apply_s / 2}}},
    }


def plan(items: int, redis: int, host: int, warm: float) -> dict[str, Any]:
    return {
        "items": items,
        "redis_bytes": redis * 2**20,
        "host_bytes": host * 2**20,
        "host_tokens": 1000 * host,
        "requests": 100,
        "cold_ms": 1000.0,
        "warm_ms": warm,
        "gain": 1 - warm / 1000,
    }


def test_shares_of_time_memory_and_gain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "machine", lambda: "Machine: this one.")
    parts = {
        "prepare": {"stages_s": {"embed": 3.25}},
        "full": part(10.0, 90.0, 64, 0),
        "incremental": part(12.0, 6.0, 4, 60),
    }
    found = {
        "plans": [plan(2200, 8, 40, 200.0), plan(150, 1, 2, 250.0)],
        "ratio": {"seconds": 0.07, "bytes": 0.0625, "gain": 0.9375},
    }
    write(parts, found, tmp_path)
    text = (tmp_path / "strategies.md").read_text(encoding="utf-8")
    assert total(parts["incremental"]) == 18.0
    for words in (
        "takes 0.18x the time of full",
        "0.06x of its added memory",
        "0.94x of its P95 gain",
        "| full | 2,200 | 10.0 | 90.0 | 100.0 | 8.00 | 40.0 (40,000 tokens) | 1,000 | 200 | -80.0%",
        "| incremental | prefixes | 64 | 4 | 60 | 0 | 3.0 |",
        "embed 3.2 s",
    ):
        assert words in text
