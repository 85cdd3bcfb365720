"""Entries that serve by identity are chosen by heat."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.plan.building import rows_of
from warmup_lib.plan.offer import ByHeat
from warmup_lib.tables import PLAN


def candidate(digest: str, heat: int, **columns: Any) -> dict[str, Any]:
    return {
        "item_id": f"i-{digest}-{columns.get('adapter', '')}",
        "layer": "embeddings",
        "tenant": "acme",
        "key_digest": digest,
        "text": f"question {digest}",
        "heat_micro": heat * 1_000_000,
    } | columns


def offer(*rows: dict[str, Any], limit: int = 9) -> ByHeat:
    return ByHeat(rows_of("plan", rows), limit)


def names(of: ByHeat, rows: Any) -> list[str]:
    return of.candidates["item_id"].take(pa.array(rows)).to_pylist()


def test_ties_go_to_digest_then_tenant_then_item() -> None:
    rows = [
        candidate("b", 1),
        candidate("a", 1, tenant="z", item_id="z"),
        candidate("a", 1, adapter="y"),
        candidate("a", 1, adapter="x"),
    ]
    made = offer(*rows)
    assert names(made, made.best().rows) == ["i-a-x", "i-a-y", "z", "i-b-"]


def test_heads_are_ordered_by_heat_and_the_reason_says_what_they_share() -> None:
    def head(digest: str, heat: int, size: int) -> dict[str, Any]:
        return candidate(digest, heat, text=None, system_prompt="x" * size, tools="y" * 40)

    made = offer(head("busy", 9, 360), head("long", 5, 3600), limit=1)
    best = made.best()
    assert names(made, best.rows) == ["i-busy-"]
    assert best.total == 9_000_000
    assert made.reason(best, 0) == "9.0 expected requests a day share its 100 tokens (estimated)"


@pytest.mark.parametrize(
    ("micro", "said"), [(1_234_567_000, "1,234.6"), (100_000, "0.1"), (12_345, "0.012")]
)
def test_reason_says_how_often(micro: int, said: str) -> None:
    made = offer(candidate("a", 0, heat_micro=micro))
    assert made.reason(made.best(), 0) == f"{said} expected requests a day need it"


def test_warm_items_are_built_on() -> None:
    made = offer(*(candidate(d, n) for d, n in (("a", 5), ("b", 4), ("c", 3), ("d", 2))), limit=3)
    warm = rows_of("plan", [candidate("b", 1), candidate("gone", 7)])
    assert made.caught(warm) == 4_000_000
    assert made.caught(PLAN.empty()) == 0
    assert names(made, made.beyond(warm, made.best().total).rows) == ["i-a-", "i-c-"]
    assert names(made, made.beyond(warm, 4_000_000).rows) == []
