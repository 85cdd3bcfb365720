"""Figures are what a person would work out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from warmup_lib.config import GatesConfig
from warmup_lib.verify.measures import by_match, first_token, gates, hit_ratios


def row(layer: str, tenant: str, match: str | None, warm: Any = None, cold: Any = None) -> Any:
    return {
        "layer": layer,
        "tenant": tenant,
        "hit": match is not None,
        "match": match,
        "warm_ttft_ms": warm,
        "cold_ttft_ms": cold,
    }


ROWS = [
    row("responses", "acme", "exact"),
    row("responses", "acme", "semantic"),
    row("responses", "acme", None),
    row("responses", "globex", None),
    row("prefixes", "acme", "prefix", 100.0, 1000.0),
    row("prefixes", "acme", "prefix", 200.0, 800.0),
    row("prefixes", "acme", None, 900.0, 900.0),
    row("prefixes", "acme", "prefix", 150.0),
]


def test_ratios_are_by_layer_and_tenant() -> None:
    ratios = hit_ratios(ROWS)
    assert ratios["responses"] == {
        "overall": 0.5,
        "requests": 4,
        "hits": 2,
        "tenants": {"acme": pytest.approx(2 / 3), "globex": 0.0},
    }
    assert hit_ratios([]) == {}


def test_matches_are_counted_by_kind() -> None:
    assert by_match(ROWS) == {
        "responses": {"exact": 1, "semantic": 1, "miss": 2},
        "prefixes": {"prefix": 3, "miss": 1},
    }


def test_first_token_compares_only_requests_sent_both_ways() -> None:
    found = first_token(ROWS)
    assert found is not None
    assert found["cold"] == {"p50": 900.0, "p99": pytest.approx(998.0), "n": 3}
    assert found["warm"]["p50"] == 200.0
    assert found["speed_up"] == 4.0  # of 10, 4 and 1
    assert found["on_hits"]["warm"] == {"p50": 150.0, "p99": pytest.approx(199.0), "n": 2}
    assert found["on_hits"]["speed_up"] == 7.0
    assert first_token(ROWS[:4]) is None


def test_gates_take_the_worst_target_and_the_answer_cache() -> None:
    complete = {"embeddings": {"a": {"completion": 1.0}, "b": {"completion": 0.99}}}
    found = gates(complete, hit_ratios(ROWS), 0, GatesConfig(cache_hit_ratio=0.5))
    assert found == {
        "warmup_completion": {"value": 0.99, "threshold": 0.995, "passed": False},
        "cache_hit_ratio": {"value": 0.5, "threshold": 0.5, "passed": True},
        "control_hits": {"value": 0, "threshold": 0, "passed": True},
    }


def test_a_control_hit_fails_and_what_was_not_measured_is_no_gate() -> None:
    assert gates({}, {}, 1, GatesConfig())["control_hits"]["passed"] is False
    assert gates({}, {}, None, GatesConfig()) == {}
