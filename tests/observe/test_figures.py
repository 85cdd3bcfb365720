from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.layers.building import new_keys
from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.observe.figures import DESCRIPTIONS, MOST_TENANTS, figures, newest_plan
from warmup_lib.tables import TABLES

NOON = datetime(2026, 3, 17, 12, tzinfo=UTC)
KEYS = new_keys()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path.as_uri())


def put(lake: Lake, name: str, partition: dict[str, str], *rows: dict[str, Any]) -> None:
    schema = TABLES[name].schema
    whole = [dict.fromkeys(schema.names) | row for row in rows]
    meta = {"whole_day": "file" not in partition.get("window", "")}
    lake.replace(name, partition, pa.Table.from_pylist(whole, schema=schema), meta)


def item(number: int, tenant: str = "acme", layer: str = "responses", **more: Any) -> Any:
    forecast = {"expected_micro": 10_000_000, "expected_low": 8, "expected_high": 12}
    return {"item_id": f"i{number}", "layer": layer, "tenant": tenant, **forecast, **more}


def look(number: int, resident: bool, target: str = "cache", layer: str = "responses") -> Any:
    return {"item_id": f"i{number}", "layer": layer, "tenant": "acme", "target": target,
            "resident": resident, "probed_at": NOON}  # fmt: skip


def receipt(number: int, target: str = "cache", status: str = "warmed") -> Any:
    return {"item_id": f"i{number}", "layer": "responses", "tenant": "acme", "target": target,
            "status": status, "at": NOON}  # fmt: skip


def hit(n: int, item_id: str | None, tenant: str = "acme", tier: str | None = None,
        target: str = "cache") -> Any:  # fmt: skip
    return {"request_id": f"r{n}", "ts": NOON, "tenant": tenant, "layer": "responses",
            "tier": tier, "target": target, "hit": item_id is not None,
            "item_id": item_id}  # fmt: skip


def told(lake: Lake, name: str, plan: str = "p") -> dict[tuple[str, ...], float]:
    assert name in DESCRIPTIONS
    return {
        tuple(f.attributes.values()): f.value
        for f in figures(lake, Config(), KEYS, plan)
        if f.name == name
    }


def test_a_plan_that_was_not_looked_at_has_no_completion(lake: Lake) -> None:
    put(lake, "plan", {"plan_id": "p"}, item(1))
    put(lake, "receipts", {"plan_id": "p"}, receipt(1))
    assert told(lake, "warmup.completion") == {}
    assert told(lake, "warmup.plan.info") == {("p",): 1}
    assert told(lake, "warmup.receipts") == {("responses", "cache", "warmed", "redis"): 1}


def test_a_target_that_was_warmed_and_is_gone_has_completion_zero(lake: Lake) -> None:
    put(lake, "plan", {"plan_id": "p"}, item(1), item(2), item(3, layer="weights"))
    put(lake, "receipts", {"plan_id": "p"}, receipt(1), receipt(2), receipt(1, "gone"))
    put(lake, "residency", {"plan_id": "p"}, look(1, True), look(2, False),
        look(3, True, "host-0", "weights"))  # fmt: skip
    assert told(lake, "warmup.completion") == {
        ("redis", "responses", "cache"): 0.5,
        ("redis", "responses", "gone"): 0.0,
        ("host", "weights", "host-0"): 1.0,
    }
    assert told(lake, "warmup.verified.timestamp") == {(): NOON.timestamp()}


def test_hits_are_counted_by_tier_and_tenant(lake: Lake) -> None:
    put(lake, "plan", {"plan_id": "p"}, item(1))
    window = {"plan_id": "p", "window": "2026-03-17"}
    put(lake, "hits", window, hit(1, "i1"), hit(2, None), hit(3, "i1", "bolt"),
        hit(4, "i1", tier="L9"))  # fmt: skip
    assert told(lake, "warmup.window.hit_ratio") == {
        ("redis", "responses"): pytest.approx(2 / 3),
        ("redis", "responses", "L9"): 1.0,
    }
    main = ("redis", "responses")
    hits = told(lake, "warmup.tenant.hits")
    assert hits[*main, KEYS.scope("acme")] == 1
    assert hits[*main, KEYS.scope("bolt")] == 1


def test_tenants_beyond_the_bound_are_one(lake: Lake) -> None:
    put(lake, "plan", {"plan_id": "p"}, item(1))
    rows = [hit(n, "i1", f"t{n}") for n in range(MOST_TENANTS + 7)]
    rows += [hit(900 + n, None, "busy") for n in range(3)]
    put(lake, "hits", {"plan_id": "p", "window": "2026-03-17"}, *rows)
    requests = told(lake, "warmup.tenant.requests")
    assert len(requests) == MOST_TENANTS + 1
    assert requests["redis", "responses", KEYS.scope("busy")] == 3
    assert requests["redis", "responses", "other"] == 8
    assert sum(requests.values()) == len(rows)


def test_the_last_day_counts_and_log_files_only_without_one(lake: Lake) -> None:
    put(lake, "plan", {"plan_id": "p"}, item(1), item(2), item(3, expected_micro=1_000_000))
    put(lake, "hits", {"plan_id": "p", "window": "2026-03-18..2026-03-20-file-a"}, hit(1, "i1"))
    put(lake, "hits", {"plan_id": "p", "window": "2026-03-19-file-b"}, hit(1, "i1"), hit(2, "i1"))
    assert told(lake, "warmup.window.requests") == {("redis", "responses"): 1}
    assert told(lake, "warmup.forecast.expected") == {}
    served = [hit(n, "i1") for n in range(9)] + [hit(n, "i2") for n in range(20, 24)]
    again = [hit(n, "i1", target="other") for n in range(9)]
    put(lake, "hits", {"plan_id": "p", "window": "2026-03-17"}, hit(1, None))
    put(lake, "hits", {"plan_id": "p", "window": "2026-03-18"}, *served, *again)
    assert told(lake, "warmup.forecast.expected") == {("redis", "responses"): 21.0}
    assert told(lake, "warmup.forecast.realised") == {("redis", "responses"): 13}
    assert told(lake, "warmup.forecast.inside") == {("redis", "responses"): 0.5}
    assert told(lake, "warmup.window.requests") == {("redis", "responses"): 22}


def test_causes_and_reasons_are_counted_by_their_words_alone(lake: Lake) -> None:
    put(lake, "plan", {"plan_id": "p"}, item(1))
    window = {"plan_id": "p", "window": "2026-03-17"}
    put(lake, "hits", window, hit(1, None))
    cause = {"ts": NOON, "tenant": "acme", "layer": "responses", "cause": "unseen",
             "evidence": "secret words", "source": "replay"}  # fmt: skip
    put(lake, "causes", window, {"request_id": "r1"} | cause, {"request_id": "r2"} | cause)
    put(lake, "left_out", {"plan_id": "p"},
        {"layer": "responses", "tenant": "acme", "digest": "d", "heat_micro": 1,
         "reason": "over_budget: acme's secret"})  # fmt: skip
    assert told(lake, "warmup.causes") == {("responses", "unseen", "redis"): 2}
    assert told(lake, "warmup.left_out") == {("responses", "over_budget", "redis"): 1}


def test_the_plan_that_was_looked_at_last_is_told_of(lake: Lake) -> None:
    assert newest_plan(lake) is None
    lake.name_latest("q")
    assert newest_plan(lake) == "q"
    for plan, hour in (("a", 14), ("b", 13)):
        seen = look(1, True) | {"probed_at": NOON.replace(hour=hour)}
        put(lake, "residency", {"plan_id": plan}, seen)
    assert newest_plan(lake) == "a"
