"""Entries that serve by identity are chosen by heat, heads by the tokens they save."""

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


def test_heads_are_ordered_by_the_tokens_they_save() -> None:
    def head(digest: str, heat: int, size: int) -> dict[str, Any]:
        return candidate(digest, heat, text=None, system_prompt="x" * size, tools="y" * 40)

    made = offer(head("short", 9, 40), head("long", 5, 360), limit=1)
    best = made.best()
    assert names(made, best.rows) == ["i-long-"]
    assert best.total == 5_000_000
    assert made.reason(best, 0) == "5.0 expected requests a day share its 100 tokens (estimated)"


def test_order_of_heads_survives_figures_beyond_64_bits() -> None:
    busy = candidate("busy", 10**8, text=None, system_prompt="x" * 400_000)
    quiet = candidate("quiet", 10**7, text=None, system_prompt="x" * 400_000)
    made = offer(quiet, busy)
    assert names(made, made.best().rows) == ["i-busy-", "i-quiet-"]


@pytest.mark.parametrize(
    ("micro", "said"), [(1_234_567_000, "1,234.6"), (100_000, "0.1"), (12_345, "0.012")]
)
def test_reason_says_how_often(micro: int, said: str) -> None:
    made = offer(candidate("a", 0, heat_micro=micro))
    assert made.reason(made.best(), 0) == f"{said} expected requests a day hold it"


def test_warm_items_are_built_on() -> None:
    made = offer(*(candidate(d, n) for d, n in (("a", 5), ("b", 4), ("c", 3), ("d", 2))), limit=3)
    warm = rows_of("plan", [candidate("b", 1), candidate("gone", 7)])
    assert made.caught(warm) == 4_000_000
    assert made.caught(PLAN.empty()) == 0
    assert names(made, made.beyond(warm, made.best().total).rows) == ["i-a-", "i-c-"]
    assert names(made, made.beyond(warm, 4_000_000).rows) == []
