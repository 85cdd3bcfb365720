from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.effect.rates import SERIES
from bench.effect.report import Pair, pairs_of, whole, write
from bench.effect.setting import Extent


def part(cold: list[str], warm: list[str]) -> dict[str, Any]:
    return {
        name: {"samples": [{"request_id": ident} for ident in idents]}
        for name, idents in (("cold", cold), ("warm", warm))
    }


def sample(number: int, first_ms: float | None, cached: int, **fields: Any) -> dict[str, Any]:
    return {
        "request_id": f"r{number}",
        "tenant": "acme",
        "head": "h",
        "identity": f"i{number}",
        "adapter": None,
        "planned": True,
        "tokens": 1600,
        "due": 0.0,
        "first_ms": first_ms,
        "served": "host",
        "prompt_tokens": 1650,
        "cached_tokens": cached,
    } | fields


def measured() -> dict[str, Any]:
    """Return parts as a run leaves them: 2,000 ms cold and 200 ms warm, 0.5/s and 4/s."""
    took = {"commit": "abc1234", "ended": "2026-03-17T12:00:00+00:00", "seconds": 60.0}
    cold = [sample(n, 2000.0, 0) for n in range(20)]
    warm = [sample(n, 200.0, 1600) for n in range(20)]
    answered = [sample(0, 10.0, 0, served="responses"), *warm[1:], sample(20, 100.0, 1600)]
    looks = [
        [{"minutes": m, "live": live, "first_ms": 200.0, "cached_share": left}]
        for m, live, left in ((0.0, True, 1.0), (1.0, False, 0.5))
    ]
    steps = {
        "cold": [{"rate": 0.5, "samples": cold}, {"rate": 1.0, "samples": [sample(0, None, 0)]}],
        "warm": [{"rate": 4.0, "samples": warm}],
    }
    plan = {"plan_id": "p", "plan_day": "2026-03-16", "day": "2026-03-17", "items": {"prefixes": 9}}
    parts = {
        "plan": plan,
        "size": {"block": 32, "cache": 93184, "requests": 100, "unserved": 7},
        "round 0": {
            "restart": True,
            "cold": {"samples": cold},
            "warm": {
                "samples": warm,
                "apply": {"completion": {"prefixes": {"completion": 0.5}}},
            },
        },
        "cold rates": {"series": {series.name: steps["cold"] for series in SERIES}},
        "warm rates": {"series": {series.name: steps["warm"] for series in SERIES}},
        "cold answers": {"samples": cold},
        "warm answers": {
            "samples": answered,
            "looks": looks,
            "hit_ratio": {"prefixes": {"overall": 0.9}},
        },
    }
    return {name: {**found, **took} for name, found in parts.items()}


def test_pairs_are_the_same_request_in_both_arms() -> None:
    assert pairs_of(part(["a", "b"], ["a", "b"])) == [
        Pair({"request_id": "a"}, {"request_id": "a"}),
        Pair({"request_id": "b"}, {"request_id": "b"}),
    ]
    with pytest.raises(ValueError, match="same requests"):
        pairs_of(part(["a", "b"], ["b", "a"]))
    with pytest.raises(ValueError, match="shorter"):
        pairs_of(part(["a", "b"], ["a"]))


@pytest.mark.parametrize(
    ("cached", "found"), [(64, True), (63, False), (96, True), (None, False), (0, False)]
)
def test_a_head_is_found_where_all_its_whole_blocks_are(cached: int | None, found: bool) -> None:
    assert whole({"cached_tokens": cached, "tokens": 70}, block=32) is found


def test_a_head_shorter_than_a_block_is_never_found() -> None:
    assert not whole({"cached_tokens": 0, "tokens": 20}, block=32)


def test_the_report_says_what_was_measured(tmp_path: Path) -> None:
    write(measured(), Extent(), tmp_path)
    text = (tmp_path / "effect.md").read_text()
    assert "long heads lower by 85%: met (90.0% and 90.0%, n = 20)" in text
    assert "|  |  | lower by | **90.0%** | **90.0%** | **90.0%** |  |" in text
    # 500 ms is beyond the cold stack at every rate, 5 s is not.
    assert "| base model | 500 ms | not even 0.50/s | 4.00/s | > 8.0 |" in text
    assert "| base model | 5 s | 0.50/s | 4.00/s | 8.0 |" in text
    assert "| warm, the same requests | 20 | 200 | 200 | 200 | 5% | 0 |" in text
    assert "| 1.0 | not asked for | 1 | 0% | 50% | 200 | 200 |" in text
    assert "| 1 | a restart | 20 | 2,000 | 2,000 | 200 | 200 | 50% |" in text
    assert (tmp_path / "effect.png").read_bytes().startswith(b"\x89PNG")


def test_a_goal_that_is_missed_is_called_missed(tmp_path: Path) -> None:
    parts = measured()
    for one in parts["round 0"]["warm"]["samples"]:
        one["first_ms"] = 400.0
    write(parts, Extent(), tmp_path)
    assert "lower by 85%: not met (80.0% and 80.0%" in (tmp_path / "effect.md").read_text()
