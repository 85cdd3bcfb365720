"""Values are the waiting that warming saves, counted by hand; costs are those measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.plan.building import rows_of
from warmup_lib.config import Config
from warmup_lib.plan.measured import Measured, Spent, Waiting
from warmup_lib.plan.value import Value

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
