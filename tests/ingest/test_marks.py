from __future__ import annotations

from typing import Any

import pytest

from warmup_lib.ingest.marks import goes_round, headers, is_health, is_warmup


@pytest.mark.parametrize(
    ("ids", "found", "field", "expected"),
    [
        (("req-1",), {}, None, False),
        (("warmup-1",), {}, None, True),
        ((None, "warmup-1"), {}, None, True),
        (("my-warmup-1",), {}, None, False),
        (("req-1",), {"X-Warmup": "plan-7"}, None, True),
        (("req-1",), {"x-warmup": "false"}, None, False),
        (("req-1",), {}, True, True),
        (("req-1",), {}, "plan-7", True),
        (("req-1",), {}, 1, True),
        (("req-1",), {}, "false", False),
        (("req-1",), {}, 0, False),
    ],
)
def test_our_own_traffic(ids: Any, found: Any, field: Any, expected: bool) -> None:
    assert is_warmup(ids, headers(found), field) is expected


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "route", "agent", "expected"),
    [
        ("ping", 1, None, None, True),
        ("Ping!", 5, None, None, True),
        ("health check", 10, None, None, True),
        ("ping", None, None, None, False),  # people type it too
        ("ping", 256, None, None, False),
        ("how do I ping a host?", 1, None, None, False),
        ("anything", None, "/healthz", None, True),
        ("anything", None, "/health/readiness?x=1", None, True),
        ("anything", None, "/v1/chat/completions", None, False),
        ("anything", None, "/healthcare/ask", None, False),
        ("anything", None, None, "kube-probe/1.31", True),
        ("anything", None, None, "OpenAI/Python 1.99", False),
    ],
)
def test_health_checks(
    prompt: str, max_tokens: Any, route: Any, agent: Any, expected: bool
) -> None:
    assert is_health(prompt, max_tokens, route, agent) is expected


@pytest.mark.parametrize(
    ("cache_control", "settings", "expected"),
    [
        (None, {}, False),
        ("no-cache", {}, True),
        ("max-age=0, No-Store", {}, True),
        ("max-age=60", {}, False),
        ("max-age=0", {}, True),
        ("private, MAX-AGE = 0", {}, True),
        ("max-age=05", {}, False),
        ("s-maxage=0, x-max-age=0", {}, False),
        ("no-cachet", {}, False),
        (None, {"skip_cache": True}, True),
        (None, {"skip_cache": "false"}, False),
        (None, {"disable_cache": True}, True),
        (None, {"cache_enabled": False}, True),
        (None, {"cache_enabled": "false"}, True),
        (None, {"cache_enabled": True}, False),
        (None, {"cache_enabled": None}, False),
    ],
)
def test_ways_round_a_cache(cache_control: Any, settings: Any, expected: bool) -> None:
    assert goes_round(cache_control, settings) is expected


def test_header_names_are_folded_and_the_last_source_wins() -> None:
    assert headers({"A": 1, "b": 2}, None, "no mapping", {"B": 3}) == {"a": 1, "b": 3}
