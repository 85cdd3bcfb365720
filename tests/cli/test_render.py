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
