"""Figures are those of the log, of hosts and of applies, and none where there is too little."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.plan.building import BEFORE, DAY, rows_of
from warmup_lib.lake import Lake
from warmup_lib.layers.spent import record
from warmup_lib.plan.measured import Measured, Spent, measure
from warmup_lib.tables import RECEIPTS


def request(n: int, **columns: Any) -> dict[str, Any]:
    row = {
        "request_id": f"r{n}",
        "ts": datetime(2026, 3, 13, 12, 0, n % 60, tzinfo=UTC),
        "tenant": "acme",
        "model": "small",
        "status": 200,
        "prompt_tokens": 100 + n,
        "cached_tokens": 50,
        "ttft_ms": 20.0 + 2.0 * (50 + n),
        "latency_ms": 400.0,
    }
    return row | columns


def logged(root: Path, rows: list[dict[str, Any]]) -> Lake:
    lake = Lake(str(root))
    lake.replace("requests", {"day": BEFORE}, rows_of("requests", rows))
    return lake


def test_the_log_tells_waiting_and_what_a_token_costs(tmp_path: Path) -> None:
    rows = [request(n) for n in range(40)]
    rows += [request(100 + n, tenant="zeta", latency_ms=1000.0) for n in range(10)]
    rows += [request(200 + n, served_from="responses", latency_ms=4.0) for n in range(9)]
    rows += [request(300 + n, status=500, latency_ms=9e4, warmup=False) for n in range(9)]
    rows += [request(400 + n, warmup=True, latency_ms=1.0) for n in range(9)]
    found = measure(logged(tmp_path, rows), BEFORE, DAY)
    assert found.answer_ms == pytest.approx((40 * 400 + 10 * 1000) / 50)  # 520
    acme, zeta = (found.places[tenant, "small", None] for tenant in ("acme", "zeta"))
    assert acme.answer_ms == pytest.approx((40 * 400 + 20 * 520) / 60)
    assert zeta.answer_ms == pytest.approx((10 * 1000 + 20 * 520) / 30)
    assert acme.answer_p95 == 400.0
    assert zeta.answer_p95 is None  # too few for a tail
    assert (found.token_ms, found.token_from) == (pytest.approx(2.0), "log")


def test_too_few_requests_tell_nothing(tmp_path: Path) -> None:
    found = measure(logged(tmp_path, [request(n) for n in range(19)]), BEFORE, DAY)
    assert found == Measured()
    assert found.digest() == Measured().digest()


def plan_of(lake: Lake, plan_id: str, day: str, sequence: int, items: list[dict[str, Any]]) -> None:
    meta = {"day": day, "sequence": sequence}
    lake.replace("plan", {"plan_id": plan_id}, rows_of("plan", items), meta)


def test_hosts_and_applies_of_earlier_days_tell_more(tmp_path: Path) -> None:
    lake = logged(tmp_path, [request(n) for n in range(40)])
    items = [{"item_id": "i", "layer": "prefixes", "tenant": "acme", "model": "small"}]
    plan_of(lake, "old", BEFORE, 1, items)
    plan_of(lake, "today", DAY, 1, items)
    hit = {"layer": "prefixes", "tenant": "acme", "hit": True, "cached_tokens": 200}
    hit |= {"cold_ttft_ms": 900.0, "warm_ttft_ms": 100.0}
    hits = [hit | {"request_id": f"r{n}"} for n in range(20)]
    lake.replace("hits", {"plan_id": "old", "window": "w"}, rows_of("hits", hits))
    skipped = {"item_id": "i", "layer": "prefixes", "target": "b", "status": "skipped"}
    skipped |= {"error": "the host does not serve its model", "tenant": "acme"}
    for plan_id, seconds in (("old", 8.0), ("today", 99.0)):
        lake.replace("receipts", {"plan_id": plan_id}, rows_of("receipts", [skipped]))
        each = {"items": 4, "seconds": seconds, "bytes": 4000, "tokens": 2000}
        record(lake, plan_id, {"prefixes": {"a": each, "b": each | {"seconds": 2.0}}})
    found = measure(lake, BEFORE, DAY)
    assert (found.token_ms, found.token_from) == (4.0, "hosts")
    assert found.spent == {"prefixes": Spent(2.0, 0.004, 1000.0, 2.0)}  # of the slower host
    assert found.unserved == {("b", "small")}
    assert found.digest() != measure(lake, BEFORE, BEFORE).digest()


def test_receipts_of_a_plan_that_is_gone_are_not_read(tmp_path: Path) -> None:
    lake = logged(tmp_path, [])
    lake.replace("receipts", {"plan_id": "gone"}, RECEIPTS.empty())
    record(lake, "gone", {"responses": {"c": {"items": 1, "seconds": 1, "bytes": 1, "tokens": 0}}})
    assert measure(lake, BEFORE, DAY).spent == {}
