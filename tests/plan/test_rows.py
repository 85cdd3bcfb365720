"""What a plan writes is told apart: chosen, served by a choice, beyond the budget, warm already."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tests.plan.building import rows_of
from warmup_lib.forecast.spread import Spread
from warmup_lib.plan.offer import ByHeat
from warmup_lib.plan.rows import counted, item_rows, left_out_rows
from warmup_lib.plan.selection import Choice
from warmup_lib.tables import LEFT_OUT, PLAN


def offer() -> ByHeat:
    rows = [
        {
            "item_id": f"i{n}",
            "layer": "responses",
            "tenant": "acme" if n < 3 else "other",
            "key_digest": f"d{n}",
            "text": "how do I pay",
            "heat_micro": 1_000_000 * n,
            "bytes": 100 + n,
        }
        for n in range(5)
    ]
    return ByHeat(rows_of("plan", rows), 5)


def choice(*rows: int, covered: tuple[int, ...] = ()) -> Choice:
    chosen = np.array(rows, np.int64)
    return Choice(chosen, chosen * 1_500_000, np.ones_like(chosen), np.array([*rows, *covered]))


def test_items_carry_rank_expected_hits_and_reason() -> None:
    rows = item_rows(offer(), choice(4, 2), Spread()).to_pylist()
    assert [(r["item_id"], r["rank"], r["expected_micro"]) for r in rows] == [
        ("i4", 1, 6_000_000),
        ("i2", 2, 3_000_000),
    ]
    assert all(r["expected_low"] < r["expected_micro"] / 1e6 < r["expected_high"] for r in rows)
    assert [r["reason"] for r in rows] == [
        "6.0 expected requests a day need it",
        "3.0 expected requests a day need it",
    ]


def test_left_out_says_why() -> None:
    warm = rows_of("plan", [{"item_id": "i3"}])
    rows = left_out_rows(offer(), choice(4, covered=(1,)), warm, {2: "redis_bytes"})
    assert rows.schema.names == LEFT_OUT.schema.names
    assert [(r["digest"], r["reason"], r["heat_micro"]) for r in rows.to_pylist()] == [
        ("d0", "below_budget", 0),
        ("d1", "covered", 1_000_000),
        ("d2", "below_budget: redis_bytes", 2_000_000),
    ]


def test_counts_by_layer_and_tenant() -> None:
    made = offer()
    items = item_rows(made, choice(4, 2), Spread())
    reasons = (
        "volatile: timestamp at characters 0-19",
        "volatile: id at characters 4-9",
        "redacted",
    )
    refused = rows_of(
        "left_out", [{"layer": "prefixes", "digest": r, "reason": r} for r in reasons]
    )
    left_out = pa.concat_tables([left_out_rows(made, choice(4, 2), PLAN.empty(), {}), refused])
    assert counted(items, left_out, ["responses", "prefixes"]) == {
        "items": {"responses": 2, "prefixes": 0},
        "expected_hits": {"responses": 9.0, "prefixes": 0.0},
        "bytes": {"responses": 206, "prefixes": 0},
        "tiers": {},
        "tenants": {"acme": 1, "other": 1},
        "sources": {},
        "left_out": {"responses": {"below_budget": 3}, "prefixes": {"redacted": 1, "volatile": 2}},
    }
    assert counted(PLAN.empty(), LEFT_OUT.empty(), ["responses"])["items"] == {"responses": 0}
