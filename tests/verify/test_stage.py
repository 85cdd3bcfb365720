"""Verification says what is resident, what later traffic found, and whether the gates hold."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.apply.memory import (
    MemoryHost,
    MemoryLayer,
    MemoryTarget,
    memory_context,
    plan_item,
    plan_table,
)
from tests.verify.world import request, requests
from warmup_lib.apply.stage import warm
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.registry import LAYERS
from warmup_lib.stage import StageReport
from warmup_lib.verify.measuring import Subject
from warmup_lib.verify.stage import run, verify
from warmup_lib.verify.window import Window, from_lake, from_rows

ANSWERS = [plan_item("responses", n) for n in range(1, 5)]
HEADS = [plan_item("prefixes", n) for n in range(1, 3)]
ITEMS = ANSWERS + HEADS


class Answers(MemoryLayer):
    """Warms and finds in memory; its candidates are those of the real layer."""

    def candidates(self, demand: Any, config: Config) -> Any:
        return LAYERS[self.name].candidates(demand, config)


def layers() -> list[MemoryLayer]:
    return [Answers("responses"), Answers("prefixes", "host")]


def encode(texts: Any) -> Any:
    return np.zeros((len(texts), 2), np.float32), np.zeros(len(texts), bool)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(f"file://{tmp_path}")
    lake.replace("plan", {"plan_id": "p1"}, plan_table(ITEMS), {"day": "2026-03-14"})
    rows = [request(n, n % 8) for n in range(80)]
    rows += [request(n, 1, bypass=True) for n in range(80, 100)]
    rows += [request(n, 1, warmup=True) for n in range(100, 110)]
    lake.replace("requests", {"day": "2026-03-15"}, requests(*rows))
    return lake


def apply(lake: Lake, targets: Any) -> None:
    asyncio.run(warm(lake, ITEMS, layers(), targets, memory_context(), resume=False))


def go(
    lake: Lake, targets: Any, window: Window | None, plan_day: str = "2026-03-14"
) -> StageReport:
    subject = Subject(lake, ITEMS, plan_day, layers(), targets, memory_context())
    return asyncio.run(verify(subject, window, encode))


def later(lake: Lake, plan_day: str = "2026-03-14") -> Window:
    return from_lake(lake, "2026-03-15", plan_day)


def test_a_warm_stack_passes_and_says_by_how_much(lake: Lake) -> None:
    targets = [MemoryTarget("cache"), MemoryHost("h")]
    apply(lake, targets)
    report = go(lake, targets, later(lake))
    facts = report.facts

    assert facts["completion"]["responses"]["cache"]["completion"] == 1.0
    assert facts["completion"]["prefixes"]["h"]["resident"] == 2
    assert facts["hit_ratio"]["responses"] == {
        "overall": 0.5,
        "requests": 80,
        "hits": 40,
        "tenants": {"acme": 0.5},
    }
    assert facts["hit_ratio"]["prefixes"]["overall"] == 0.25
    assert facts["by_match"]["responses"] == {"exact": 40, "miss": 40}
    assert (facts["bypassed"], facts["bypass_share"], facts["own_traffic"]) == (20, 0.2, 10)
    assert facts["first_token"]["cold"]["n"] == 80
    assert facts["first_token"]["on_hits"]["speed_up"] == 10.0
    assert facts["control_hits"] == 0
    assert all(gate["passed"] for gate in facts["gates"].values())
    assert list(facts["gates"]) == ["warmup_completion", "cache_hit_ratio", "control_hits"]
    assert (facts["window"], facts["in_sample"], facts["unavailable"]) == ("2026-03-15", False, [])
    assert report.notes == ()
    assert lake.read("hits", {"plan_id": "p1", "window": "2026-03-15"}).num_rows == 160
    assert report.rows_out == 6 + 160


def test_the_plan_offline_agrees_with_what_was_found_live(lake: Lake) -> None:
    targets = [MemoryTarget("cache"), MemoryHost("h")]
    apply(lake, targets)
    facts = go(lake, targets, later(lake)).facts
    for layer in ("responses", "prefixes"):
        shares = facts["baselines"][layer]
        assert shares["plan"] == shares["live"] == facts["hit_ratio"][layer]["overall"]
        assert shares["cold"] == 0.0
        assert shares["top_k"] is None  # no prompts of the plan's day in this lake
    assert facts["baselines"]["responses"]["hindsight"] == 0.5
    assert facts["baselines"]["responses"]["size"] == 4


def test_without_later_traffic_only_residency_is_judged(lake: Lake) -> None:
    targets = [MemoryTarget("cache"), MemoryHost("h")]
    apply(lake, targets)
    report = go(lake, targets, None)
    assert list(report.facts["gates"]) == ["warmup_completion"]
    assert report.notes == ("no later traffic was given: only residency is proven",)
    assert lake.partitions("hits") == []


def test_a_log_file_of_a_day_leaves_what_was_measured_on_that_day(lake: Lake) -> None:
    targets = [MemoryTarget("cache"), MemoryHost("h")]
    apply(lake, targets)
    go(lake, targets, later(lake))
    file = from_rows(requests(request(900, 7), request(901, 1)), Config(), "2026-03-14")
    report = go(lake, targets, file)
    assert report.facts["hit_ratio"]["responses"]["requests"] == 2
    assert "calibration" not in report.facts
    day, few = lake.partitions("hits")
    assert (day["window"], few["window"]) == ("2026-03-15", file.name)
    asked = [set(lake.read("hits", one)["request_id"].to_pylist()) for one in (day, few)]
    assert (len(asked[0]), asked[1]) == (80, {"r900", "r901"})


def test_traffic_that_the_plan_knew_is_called_in_sample(lake: Lake) -> None:
    targets = [MemoryTarget("cache"), MemoryHost("h")]
    report = go(lake, targets, later(lake, "2026-03-15"), "2026-03-15")
    assert report.facts["in_sample"] is True
    assert any("is not later than the plan's last day 2026-03-15" in n for n in report.notes)


def test_a_cold_stack_fails_its_gates(lake: Lake) -> None:
    report = go(lake, [MemoryTarget("cache"), MemoryHost("h")], later(lake))
    gates = report.facts["gates"]
    assert gates["warmup_completion"] == {"value": 0.0, "threshold": 0.995, "passed": False}
    assert gates["cache_hit_ratio"]["passed"] is False
    assert any(
        n.startswith("gate warmup_completion failed on layer prefixes of target 'h': 0 of ")
        and n.endswith("of most others: no receipt: not applied")
        for n in report.notes
    )


def test_targets_that_are_down_or_missing_are_named(lake: Lake) -> None:
    cache, host = MemoryTarget("cache"), MemoryHost("h")
    apply(lake, [cache, host])
    cache.down = True
    report = go(lake, [cache, host], later(lake))
    assert report.facts["unavailable"] == [{"target": "cache", "reason": "no connection"}]
    assert list(report.facts["hit_ratio"]) == ["prefixes"]
    assert report.facts["baselines"]["responses"]["live"] is None
    cache.down = False
    alone = go(lake, [cache], later(lake))
    assert alone.facts["skipped_layers"] == ["prefixes"]
    assert alone.facts["first_token"] is None
    assert any("layer prefixes was left out" in note for note in alone.notes)


def test_a_window_without_demand_has_no_hit_ratio(lake: Lake) -> None:
    lake.replace("requests", {"day": "2026-03-15"}, requests(request(1, 1, bypass=True)))
    report = go(lake, [MemoryTarget("cache")], later(lake))
    assert report.facts["hit_ratio"] == {}
    assert report.facts["bypass_share"] == 1.0
    assert any("asked the caches" in note for note in report.notes)


def test_bad_calls_say_what_to_do(lake: Lake, tmp_path: Path) -> None:
    config, keys = Config(lake=f"file://{tmp_path}"), Keys(b"0123456789abcdef")
    file = tmp_path / "requests.jsonl"
    with pytest.raises(InputDataError, match="no such plan: nope; there are p1"):
        asyncio.run(run(lake, "nope", config, keys))
    with pytest.raises(InputDataError, match="not both"):
        asyncio.run(run(lake, "p1", config, keys, day="2026-03-15", requests=file))
    with pytest.raises(InputDataError, match="no requests of 2026-03-16 in the lake"):
        asyncio.run(run(lake, "p1", config, keys, day="2026-03-16"))
    lake.replace("plan", {"plan_id": "p1"}, plan_table(ITEMS))
    with pytest.raises(InputDataError, match="which day it was made for"):
        asyncio.run(run(lake, "p1", config, keys))
