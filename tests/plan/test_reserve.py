"""How much of the answers a plan takes where the gateway fills the same cache."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plan.conftest import SECRET
from tests.plan.test_never_again import run
from warmup_lib.config.layers import LayersConfig

ITEMS = 20
DAYS = 10
LAST = "2026-03-11"
ALL = set(LayersConfig.model_fields)


def row(day: int, minute: int, word: str) -> dict[str, Any]:
    at = datetime(2026, 3, 2, 8, tzinfo=UTC) + timedelta(days=day, minutes=minute)
    return {
        "request_id": f"r{day}-{minute}",
        "ts": at.isoformat(),
        "tenant": "acme",
        "model": "m",
        "prompt": f"What became of {word}?",
        "response": f"It is {word}.",
    }


def log(fresh: int, daily: int) -> list[dict[str, Any]]:
    """Return days of two halves: new questions asked in turn five times, and the same every day.

    An LRU cache of `fresh` items hits four fifths of the first half, a smaller one none; only a
    plan hits the second half, which is `daily` questions asked once.
    """
    rows = []
    for day in range(DAYS):
        words = [f"{'abcdefghij'[day]}{'x' * n} new" for n in range(fresh)] * 5
        words += [f"parcel {'y' * n}" for n in range(daily)]
        rows += [row(day, minute, word) for minute, word in enumerate(words)]
    return rows


def planned(tmp_path: Path, rows: list[dict[str, Any]], **responses: Any) -> dict[str, Any]:
    tmp_path.mkdir()
    file, settings = tmp_path / "log.jsonl", tmp_path / "warmup.yaml"
    file.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    layers: dict[str, Any] = {name: {"enabled": False} for name in ALL - {"responses"}}
    layers["responses"] = {"items": ITEMS, **responses}
    made = {"layers": layers, "plan": {"early_window": None}}
    settings.write_text(yaml.safe_dump({"lake": (tmp_path / "lake").as_uri(), **made}))
    run(settings, "ingest", "--format", "jsonl", str(file))
    return run(settings, "plan", "--day", LAST)


@pytest.fixture(autouse=True)
def _secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("fresh", "with_gateway"),
    [
        pytest.param(ITEMS, 0, id="any plan takes room that traffic uses better"),
        pytest.param(ITEMS // 2, ITEMS // 2, id="half of it is enough for traffic"),
        pytest.param(2 * ITEMS, ITEMS, id="lru hits nothing"),
    ],
)
def test_the_plan_takes_what_traffic_can_spare(
    tmp_path: Path, fresh: int, with_gateway: int
) -> None:
    rows = log(fresh, ITEMS)
    plan = planned(tmp_path / "shared", rows, gateway_writes=True, ttl="1h")
    assert plan["items"]["responses"] == with_gateway
    assert any("Do not warm" in note for note in plan["notes"]) == (with_gateway == 0)
    reasons = plan["left_out"]["responses"]
    assert ("natural_traffic" in reasons) == (with_gateway < ITEMS)
    alone = planned(tmp_path / "alone", rows)
    assert alone["items"]["responses"] == ITEMS
    assert "natural_traffic" not in alone["left_out"]["responses"]
