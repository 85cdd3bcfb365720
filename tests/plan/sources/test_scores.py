"""Scores are added up exactly, from what A/B tests measured and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.plan.building import DAY, rows_of
from warmup_lib.lake import Lake
from warmup_lib.plan.sources.scores import read_scores


def request(number: int, score: float | None, **more: Any) -> dict[str, Any]:
    return {
        "request_id": str(number),
        "ts": datetime(2026, 3, 14, 12, tzinfo=UTC),
        "tenant": "acme",
        "model": "small",
        "system_prompt": "You are brief.",
        "head_digest": "h",
        "locale": "en",
        "ab_arm": "x",
        "ab_score": score,
        "warmup": False,
        "health": False,
    } | more


def scores(folder: Path, *rows: dict[str, Any], **only: Any) -> list[dict[str, Any]]:
    lake = Lake(str(folder))
    lake.replace("requests", {"day": DAY}, rows_of("requests", rows))
    connection = lake.sql()
    try:
        found: list[dict[str, Any]] = read_scores(connection, DAY, DAY, **only).to_pylist()
        return found
    finally:
        connection.close()


def test_sums_are_exact(tmp_path: Path) -> None:
    [row] = scores(tmp_path, request(1, 0.1), request(2, 0.2), request(3, -4e9))
    assert (row["requests"], row["ab_arm"], row["day"]) == (3, "x", DAY)
    assert int(row["score_micro"]) == 300_000 - 4 * 10**15
    assert int(row["square_micro2"]) == 5 * 10**10 + 16 * 10**30


def test_what_no_test_measured_is_left_out(tmp_path: Path) -> None:
    rows = [
        request(1, 0.5),
        request(2, None),
        request(3, 0.5, ab_arm=None),
        request(4, 0.5, warmup=True),
        request(5, 0.5, health=True),
        request(6, 0.5, status=500),
        request(7, 0.5, system_prompt=None),
        request(8, float("nan")),
        request(9, 0.5, status=200),
    ]
    [row] = scores(tmp_path, *rows)
    assert row["requests"] == 2


def test_one_row_a_place_arm_and_day_in_the_scope(tmp_path: Path) -> None:
    rows = [
        request(1, 0.5),
        request(2, 0.5, ab_arm="y", head_digest="i"),
        request(3, 0.5, tenant="beta"),
        request(4, 0.5, locale=None),
    ]
    assert len(scores(tmp_path, *rows)) == 4
    assert [r["tenant"] for r in scores(tmp_path, *rows, tenants=["beta"])] == ["beta"]
    assert scores(tmp_path, *rows, models=["other"]) == []
