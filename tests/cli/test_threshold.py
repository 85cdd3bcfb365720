"""`warmup threshold` answers with thresholds and digests; texts only where they are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from warmup_lib.cli import main

PAIRS = "".join(
    json.dumps({"a": f"where is the {a}{b}o", "b": f"where is that {a}{b}o", "same": a != "z"})
    + "\n"
    for a in "bcdfghjklmnprstvwz"
    for b in "aeiouabcdfghjklmnprstv"
)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("WARMUP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WARMUP_SECRET", "s" * 32)
    (tmp_path / "pairs.jsonl").write_text(PAIRS, encoding="utf-8")

    def run(*arguments: str) -> Result:
        lake = (tmp_path / "lake").as_uri()
        return CliRunner().invoke(main, ["threshold", "--lake", lake, *arguments])

    return run


def test_json_and_texts(call: object, tmp_path: Path) -> None:
    assert callable(call)
    given = ["--pairs", str(tmp_path / "pairs.jsonl"), "--day", "2026-03-16"]
    result = call(*given, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["tenants"]["*"]["verdict"] == "none_keeps"
    assert facts["wrong_hits"][0]["wrong"] is True
    assert "where is" not in result.output
    plain = call(*given)
    assert "equal only" in plain.output
    assert "where is" not in plain.output
    assert "where is that z" in call(*given, "--show").output
    assert call(*given, "--show", "--json").exit_code == 2


def test_a_lake_without_requests_asks_for_a_log_or_of_pairs_for_the_day(
    call: object, tmp_path: Path
) -> None:
    assert callable(call)
    for arguments, says in (
        ([], "ingest logs first"),
        (["--pairs", str(tmp_path / "pairs.jsonl")], "--day is needed"),
    ):
        result = call(*arguments)
        assert result.exit_code == 2
        assert says in result.output
