"""Where nothing that was asked for is asked for again, there is nothing to warm."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from click.testing import CliRunner

from tests.plan.conftest import SECRET
from warmup_lib.cli import main

if TYPE_CHECKING:
    import pytest

DAYS, A_DAY = 7, 30


def lines() -> str:
    """Return a log in which no prompt and no system prompt comes twice."""
    rows = []
    for n in range(DAYS * A_DAY):
        at = datetime(2026, 3, 2, 9, tzinfo=UTC) + timedelta(days=n // A_DAY, minutes=n % A_DAY)
        word = hashlib.sha256(str(n).encode()).hexdigest()[:16]
        rows.append(
            {
                "request_id": f"r{n}",
                "ts": at.isoformat(),
                "tenant": "acme",
                "model": "m",
                "prompt": f"What became of parcel {word}?",
                "system_prompt": f"You answer for the shop called {word}.",
                "response": f"Parcel {word} is on its way.",
            }
        )
    return "".join(json.dumps(row) + "\n" for row in rows)


def run(settings: Path, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, [*arguments, "--config", str(settings), "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_plan_is_empty_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path / "home"))
    log, settings = tmp_path / "log.jsonl", tmp_path / "warmup.yaml"
    log.write_text(lines(), encoding="utf-8")
    layers = {name: {"enabled": False} for name in ("weights", "adapters", "retrieval")}
    settings.write_text(yaml.safe_dump({"lake": (tmp_path / "lake").as_uri(), "layers": layers}))
    run(settings, "ingest", "--format", "jsonl", str(log))
    plan = run(settings, "plan", "--day", "2026-03-08")
    assert plan["decision"] == "planned"
    assert set(plan["items"].values()) == {0}
    told = " ".join(plan["notes"])
    assert "nothing was asked for again" in told
    for layer in plan["items"]:
        assert f"{layer}: nothing to warm" in told
