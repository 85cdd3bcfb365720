"""The table of the strategies says what two plans took and gained, and never more than is known."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.plan.building import rows_of
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.layers.spent import record
from warmup_lib.plan.compare import compare


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"))
    for plan_id, strategy, count in (("a", "full", 3), ("b", "incremental", 1)):
        rows = [{"item_id": str(n), "layer": "responses"} for n in range(count)]
        made.replace("plan", {"plan_id": plan_id}, rows_of("plan", rows), {"strategy": strategy})
    return made


def warmed(
    lake: Lake, plan_id: str, seconds: float, costs: dict[str, dict[str, tuple[int, int]]]
) -> None:
    """Write what an apply leaves: by layer and target the bytes and tokens."""
    told = {
        layer: {
            target: {"items": 1, "seconds": 1.0, "bytes": size, "tokens": tokens}
            for target, (size, tokens) in of_layer.items()
        }
        for layer, of_layer in costs.items()
    }
    lake.annotate("receipts", {"plan_id": plan_id}, {"seconds": seconds})
    record(lake, plan_id, told)


def verified(lake: Lake, plan_id: str, window: str, cold: list[Any], warm: list[Any]) -> None:
    rows = [
        {
            "request_id": str(n),
            "ts": datetime(2026, 3, 14, tzinfo=UTC),
            "layer": "prefixes",
            "target": "h",
            "hit": True,
            "cold_ttft_ms": one,
            "warm_ttft_ms": other,
        }
        for n, (one, other) in enumerate(zip(cold, warm, strict=True))
    ]
    lake.replace("hits", {"plan_id": plan_id, "window": window}, rows_of("hits", rows))


def test_time_memory_and_first_tokens_of_both(lake: Lake) -> None:
    host = {"weights": {"h": (9_999, 70)}, "adapters": {"h": (500, 0)}, "prefixes": {"h": (300, 6)}}
    warmed(lake, "a", 100.0, {"responses": {"r1": (600, 0), "r2": (600, 0)}, **host})
    warmed(lake, "b", 20.0, {"responses": {"r1": (200, 0)}, "prefixes": {"h": (100, 2)}})
    cold = [float(n) for n in range(1, 101)]
    verified(lake, "a", "2026-03-17", [*cold, 5.0, None], [*(n / 4 for n in cold), None, 7.0])
    verified(lake, "b", "2026-03-17", cold, [n / 2 for n in cold])
    verified(lake, "a", "2026-03-18", [1.0], [1.0])  # only one of them was verified on that day
    found = compare(lake, "a", "b")

    full, more = found["plans"]
    assert found["window"] == "2026-03-17"
    assert (full["strategy"], full["items"], full["seconds"]) == ("full", 3, 100.0)
    assert (more["strategy"], more["items"], more["seconds"]) == ("incremental", 1, 20.0)
    # What a host loads when it starts is not what warming adds.
    assert (full["redis_bytes"], full["host_bytes"], full["host_tokens"]) == (1200, 800, 6)
    assert (more["redis_bytes"], more["host_bytes"], more["host_tokens"]) == (200, 100, 2)
    assert (full["requests"], full["cold_ms"], full["warm_ms"]) == (100, 95.0, 23.8)
    assert (full["gain"], more["gain"]) == (0.75, 0.5)
    assert found["ratio"] == {"seconds": 0.2, "bytes": 0.15, "gain": 0.6667}


def test_what_was_not_measured_is_not_told(lake: Lake) -> None:
    found = compare(lake, "a", "b")
    assert found["window"] is None
    assert found["ratio"] == {"seconds": None, "bytes": None, "gain": None}
    assert {plan["gain"] for plan in found["plans"]} == {None}
    warmed(lake, "a", 10.0, {})
    warmed(lake, "b", 5.0, {"responses": {"r": (10, 0)}})
    # Nothing was added by the first one: there is no share of it.
    assert compare(lake, "a", "b")["ratio"] == {"seconds": 0.5, "bytes": None, "gain": None}


def test_an_unknown_plan_is_named(lake: Lake) -> None:
    with pytest.raises(InputDataError, match="no such plan: c"):
        compare(lake, "a", "c")
