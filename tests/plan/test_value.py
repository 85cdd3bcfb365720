"""Values are the waiting that warming saves, counted by hand; costs are those measured."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.plan.building import BEFORE, DAY, rows_of
from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.layers.registry import LAYERS
from warmup_lib.layers.spent import record
from warmup_lib.plan.measured import Measured, Spent, Waiting, measure
from warmup_lib.plan.planned import planned
from warmup_lib.plan.value import Value
from warmup_lib.tables import RECEIPTS

DAY_S = 86_400
NOTHING = np.zeros(1, np.int64)


def one(layer: str, **columns: Any) -> Any:
    row = {"layer": layer, "tenant": "acme", "model": "small", "ttl_s": 2 * DAY_S}
    return rows_of("plan", [row | {"response": "yes"} | columns])


def saved(item: Any, hits: float, *, tokens: int = 0, measured: Any = None, **config: Any) -> float:
    value = Value(Config.model_validate(config), measured or Measured())
    expected = np.array([round(hits * 1e6)])
    return int(value.saved(item, expected, np.array([tokens]))[0]) / 1e6


def test_an_answer_saves_its_wait_for_each_hit_in_its_lifetime() -> None:
    assert saved(one("responses"), 3) == 3.0  # seconds a day: 1,000 ms by default
    assert saved(one("responses", ttl_s=DAY_S // 4), 3) == 0.75
    places = {("acme", "small", None): Waiting(400.0)}
    known = Measured(places=places, answer_ms=700.0)
    assert saved(one("responses"), 3, measured=known) == pytest.approx(1.2)
    assert saved(one("responses", adapter="x"), 3, measured=known) == pytest.approx(2.1)


def test_waiting_above_the_aim_is_worth_more() -> None:
    slow = Measured(places={("acme", "small", None): Waiting(400.0, 3000.0, 2500.0)})
    assert saved(one("responses"), 1, measured=slow, slo={"answer": "2s"}) == pytest.approx(0.6)
    assert saved(one("responses"), 1, measured=slow, slo={"answer": "5s"}) == pytest.approx(0.4)
    very = Measured(places={("acme", "small", None): Waiting(400.0, 90_000.0, None)})
    assert saved(one("responses"), 1, measured=very, slo={"answer": "2s"}) == pytest.approx(1.6)
    head = one("prefixes", ttl_s=DAY_S)
    plain = saved(head, 50, tokens=100, measured=slow)
    pressed = saved(head, 50, tokens=100, measured=slow, slo={"first_token": "1s"})
    assert pressed == pytest.approx(2.5 * plain)


def test_warming_what_traffic_writes_too_adds_the_first_request_alone() -> None:
    # Half an hour, 48 requests a day: one is expected in it.
    head = one("prefixes", ttl_s=1800)
    assert saved(head, 48, tokens=500) == pytest.approx((1 - math.exp(-1)) * 0.5, abs=1e-6)
    assert saved(head, 48_000, tokens=500) == pytest.approx(0.5)
    assert saved(one("weights"), 1000) == pytest.approx(1.0)
    layers = {"responses": {"gateway_writes": True}}
    assert saved(one("responses"), 1, layers=layers) == pytest.approx(1 - math.exp(-2), abs=1e-6)


def test_other_layers_save_what_encoding_or_searching_takes() -> None:
    assert saved(one("embeddings"), 2) == 0.01
    assert saved(one("embeddings", tier="L1"), 2) == 0.002
    assert saved(one("retrieval", tier="L3"), 2) == 0.04


def test_seconds_are_those_of_an_item_of_a_token_and_of_an_answer_to_generate() -> None:
    spent = {
        "responses": Spent(0.5, 0.0, 0.0, 0.0),
        "prefixes": Spent(9.0, 0.002, 0.0, 0.0),
    }
    value = Value(Config(), Measured(spent=spent, answer_ms=300.0))
    rows = rows_of(
        "plan",
        [{"layer": "responses", "tenant": "t", "model": "m", "response": r} for r in ("yes", None)],
    )
    assert value.seconds(rows, np.zeros(2, np.int64)).tolist() == [0.5, 0.8]
    assert value.seconds(one("prefixes"), np.array([500])).tolist() == [1.0]
    assert value.seconds(one("adapters"), NOTHING).tolist() == [0.045]


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


def test_a_plan_says_what_it_will_take_and_save() -> None:
    head = {"layer": "prefixes", "tenant": "t", "model": "m", "ttl_s": DAY_S}
    head |= {"system_prompt": "x" * 6400, "expected_micro": 10**12}
    items = rows_of(
        "plan",
        [
            head | {"item_id": "a", "tools": "y" * 640},
            head | {"item_id": "b", "tools": "z" * 640},
            {"item_id": "c", "layer": "responses", "response": "yes", "tenant": "t", "model": "m"}
            | {"expected_micro": 2_000_000, "ttl_s": DAY_S, "bytes": 1700},
        ],
    )
    spent = {"prefixes": Spent(1.0, 0.001, 0.0, 100.0)}
    value = Value(Config(), Measured(spent=spent, token_ms=2.0))
    told = planned(items, [LAYERS["prefixes"], LAYERS["responses"], LAYERS["adapters"]], value)
    # 100 blocks together; a separator, 640 bytes: ten blocks of its own each.
    assert told["prefixes"] == {
        "tokens": 16 * 120,
        "seconds": 1.92,
        "bytes": 192_000,
        "saved_s": pytest.approx(2 * 16 * 110 * 2.0 / 1000),
        "from": "applies",
    }
    assert told["responses"] == {
        "seconds": 0.001,
        "bytes": 1700,
        "saved_s": 2.0,
        "from": "default",
    }
    assert told["adapters"] == {"seconds": 0.0, "bytes": 0, "saved_s": 0.0, "from": "default"}


def test_receipts_of_a_plan_that_is_gone_are_not_read(tmp_path: Path) -> None:
    lake = logged(tmp_path, [])
    lake.replace("receipts", {"plan_id": "gone"}, RECEIPTS.empty())
    record(lake, "gone", {"responses": {"c": {"items": 1, "seconds": 1, "bytes": 1, "tokens": 0}}})
    assert measure(lake, BEFORE, DAY).spent == {}
