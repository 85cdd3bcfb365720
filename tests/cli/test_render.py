"""What the commands print holds every figure that it is about."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from warmup_lib.cli import render


def test_tiers_stand_with_their_requests_and_what_the_lists_were_checked_for() -> None:
    out = StringIO()
    facts = {
        "tiers": {
            "L1": {"layer": "embeddings", "requests": 5587, "hit_ratio": 0.97959},
            "L3": {"layer": "retrieval", "requests": 596, "hit_ratio": 1.0},
        },
        "audit": {"retrieval": {"cache": {"lists_checked": 48, "lists_equal": 36}}},
    }
    render.tiers(Console(file=out, width=120), facts)
    printed = out.getvalue()
    for word in ("L1 system prompts", "5,587", "97.96 %", "L3 chunk lists", "596", "75.00 %"):
        assert word in printed


def test_without_tiers_nothing_is_printed() -> None:
    out = StringIO()
    render.tiers(Console(file=out), {"tiers": {}, "audit": {}})
    assert out.getvalue() == ""


def test_a_plan_under_budgets_shows_their_use_and_how_near_the_best_it_is() -> None:
    out = StringIO()
    facts = {
        "items": {"responses": 3, "weights": 0},
        "planned": {
            "responses": {"seconds": 2.5, "bytes": 3 * 2**20, "saved_s": 123.0, "from": "applies"},
            "weights": {"seconds": 0.0, "bytes": 0, "saved_s": 0.0, "from": "default"},
        },
        "figures": {"answer_ms": "log", "token_ms": "hosts"},
        "budgets": {"redis_bytes": {"limit": 4_000_000, "used": 3_145_728}},
        "gap": 0.0012,
        "bound_s": 123.15,
    }
    console = Console(file=out, width=120)
    render.planned(console, facts)
    render.budgets(console, facts)
    printed = out.getvalue()
    for word in ("2.500", "3.000", "123.0", "applies", "3,145,728", "4,000,000", "99.88%"):
        assert word in printed
    assert "weights" not in printed


def test_without_budgets_no_table_of_them_is_printed() -> None:
    out = StringIO()
    render.budgets(Console(file=out), {"budgets": {"items/responses": {"limit": 1, "used": 1}}})
    assert out.getvalue() == ""
