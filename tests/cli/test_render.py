"""What the commands print holds every figure that it is about."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console

from warmup_lib.cli import render
from warmup_lib.stage import StageReport


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
        "items": {"responses": 3, "weights": 0, "prefixes": 1},
        "planned": {
            "responses": {"seconds": 2.5, "bytes": 3 * 2**20, "saved_s": 123.0, "from": "applies"},
            "weights": {"seconds": 0.0, "bytes": 0, "saved_s": 0.0, "from": "default"},
            "prefixes": {"seconds": 0.9, "bytes": 0, "saved_s": 7.0, "from": "default"},
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
    for word in ("2.500", "3.000", "123.0", "applies", "guess", "3,145,728", "4,000,000", "99.88%"):
        assert word in printed
    assert "weights" not in printed


def test_without_budgets_no_table_of_them_is_printed() -> None:
    out = StringIO()
    render.budgets(Console(file=out), {"budgets": {"items/responses": {"limit": 1, "used": 1}}})
    assert out.getvalue() == ""


def test_two_strategies_stand_with_their_figures_and_ratios() -> None:
    out = StringIO()
    plan = {
        "strategy": "full",
        "items": 2209,
        "redis_bytes": 11 * 2**19,
        "host_bytes": 1250 * 2**20,
        "cold_ms": 1783.0,
        "warm_ms": 187.2,
    }
    plans = [
        {**plan, "plan_id": "2026-03-16-nightly-0a", "seconds": 81.5, "gain": 0.895},
        {**plan, "plan_id": "2026-03-16-nightly-0b", "seconds": None, "gain": None},
    ]
    ratio = {"seconds": None, "bytes": 0.128, "gain": 0.98}
    render.plan_compare(Console(file=out, width=200), {"plans": plans, "ratio": ratio})
    printed = out.getvalue()
    words = ("2026-03-16-nightly-0a", "2,209", "81.5", "5.500", "1,250.0", "187.2", "89.50 %")
    for word in words:
        assert word in printed
    assert "not applied yet: 2026-03-16-nightly-0b" in printed
    plans[1]["seconds"], ratio["seconds"] = 33.0, 0.17
    render.plan_compare(Console(file=out, width=200), {"plans": plans, "ratio": ratio})
    said = "0.17x the time, 0.13x the added memory, Redis and host, 0.98x the P95 gain"
    assert said in out.getvalue()
    ratio["gain"] = None
    render.plan_compare(Console(file=out, width=200), {"plans": plans, "ratio": ratio})
    assert "0.13x the added memory, Redis and host, not known: P95 gain" in out.getvalue()
    assert "-x" not in out.getvalue()


def test_a_diff_shows_the_first_items_with_their_reasons() -> None:
    out = StringIO()

    def items(count: int, **columns: str | None) -> list[dict[str, Any]]:
        return [
            {"item_id": str(n), "tenant": f"tenant-{n}", "expected_hits": 1.5, **columns}
            for n in range(count)
        ]

    sides = {
        "added": items(7, reason="5.0 expected requests a day need it"),
        "kept": [],
        "dropped": [
            *items(1, reason="old", left_out="below_budget: redis_bytes"),
            *items(1, reason="old", left_out=None),
        ],
    }
    counts = {side: len(rows) for side, rows in sides.items()}
    facts = {"layers": {"responses": {**counts, "why_dropped": {}, "items": sides}}}
    render.plan_diff(Console(file=out, width=120), facts)
    printed = out.getvalue()
    assert "tenant-4" in printed
    assert "tenant-5" not in printed
    for word in ("5.0 expected requests a day need it", "below_budget: redis_bytes"):
        assert word in printed
    assert "not asked for any more" in printed
    assert "old" not in printed


def test_sources_are_shown_where_there_are_more_than_the_log() -> None:
    out = StringIO()
    console = Console(file=out, width=120)
    base = {"decision": "planned", "plan_id": "p", "items": {}, "expected_hits": {}, "left_out": {}}
    report = StageReport("plan", 0, 0, 0.0)
    alone = {"queries": {"items": {"responses": 1000}, "only": 1000}}
    render.plan(console, replace(report, facts={**base, "sources": alone}), [])
    assert "Sources" not in out.getvalue()
    more = {**alone, "pinned": {"items": {"L1": 1, "responses": 12}, "only": 11}}
    render.plan(console, replace(report, facts={**base, "sources": more}), [])
    for word in ("queries", "responses 1,000", "L1 1, responses 12", "11"):
        assert word in out.getvalue()


def test_a_plan_shows_all_notes_once_and_what_it_adds_to() -> None:
    out = StringIO()
    facts = {
        "decision": "planned",
        "plan_id": "2026-03-14-nightly-0a1b2c3d4e",
        "items": {"responses": 3},
        "expected_hits": {"responses": 1.0},
        "left_out": {},
        "sources": {},
    }
    floor = "responses: zeta gets 1 of the 3 items that its floor asks for"
    built = [
        StageReport("documents", 0, 0, 0.1, ("plan.sources.pinned: the list is empty",), {}),
        StageReport("embed", 0, 0, 0.1, ("twice",), {}),
        StageReport("embed", 0, 0, 0.1, ("twice",), {}),
        StageReport("forecast", 0, 0, 0.1, ("the peak is at 14:00",), {}),
    ]
    report = StageReport("plan", 0, 3, 0.1, (floor,), facts)
    render.plan(Console(file=out, width=120), report, built)
    printed = out.getvalue().splitlines()
    assert "note: plan.sources.pinned: the list is empty" in printed
    assert f"note: {floor}" in printed
    assert "note: the peak is at 14:00" in printed
    assert printed.count("note: twice") == 1
    assert "which adds to" not in out.getvalue()
    more = replace(report, facts={**facts, "base": "2026-03-13-nightly-0a"})
    render.plan(Console(file=out, width=120), more, [])
    assert "2026-03-14-nightly-0a1b2c3d4e, which adds to 2026-03-13-nightly-0a" in out.getvalue()
