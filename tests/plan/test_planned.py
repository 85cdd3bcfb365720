"""A plan says what warming it takes and saves, shared blocks counted once."""

from __future__ import annotations

import pytest

from tests.plan.building import rows_of
from warmup_lib.config import Config
from warmup_lib.layers.registry import LAYERS
from warmup_lib.plan.measured import Measured, Spent
from warmup_lib.plan.planned import planned
from warmup_lib.plan.value import Value

DAY_S = 86_400


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
