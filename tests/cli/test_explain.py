"""The command that explains misses: what it asks for, what it prints, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from warmup_lib import pipeline
from warmup_lib.cli import main
from warmup_lib.cli.explain import causes
from warmup_lib.explain.rows import remedies
from warmup_lib.stage import StageReport

FACTS: dict[str, Any] = {
    "plan_id": "p",
    "window": "2026-03-17",
    "misses": 4,
    "causes": {"unseen": 3, "key_tenant": 1},
    "unknown_share": 0.0,
    "by_layer": {"embeddings L1": {"unseen": 1}, "responses": {"unseen": 2, "key_tenant": 1}},
    "unavailable": [],
    "remedies": remedies({"unseen": 3, "key_tenant": 1}),
}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["explain", *map(str, arguments)])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []

    def explain(_: Any, plan_id: str, **options: Any) -> StageReport:
        made.append((plan_id, options["day"], options["requests"]))
        return StageReport("explain", 9, 4, 0.1, ("a note",), {**FACTS})

    monkeypatch.setattr(pipeline, "explain", explain)
    return made


@pytest.mark.parametrize(
    "arguments", [(), ("--day", "2026-03-17", "--requests", __file__), ("--day", "tomorrow")]
)
def test_one_window_has_to_be_named(calls: list[Any], arguments: tuple[str, ...]) -> None:
    done = run("--plan", "p", *arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert not calls


def test_one_json_object_holds_causes_and_the_unknown_share(calls: list[Any]) -> None:
    done = run("--plan", "p", "--day", "2026-03-17", "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert told["causes"] == {"unseen": 3, "key_tenant": 1}
    assert told["unknown_share"] == 0
    assert told["notes"] == ["a note"]
    assert calls == [("p", "2026-03-17", None)]


def test_a_target_that_was_down_is_an_exit_of_one(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FACTS, "unavailable", [{"target": "redis", "reason": "no connection"}])
    assert run("--plan", "p", "--requests", __file__, "--json").exit_code == 1
    assert calls == [("p", None, Path(__file__))]


def test_a_terminal_shows_each_layers_causes_and_what_to_do(calls: list[Any]) -> None:
    done = run("--plan", "p", "--day", "2026-03-17")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    [line] = [line for line in lines if "key_tenant" in line and "%" in line]
    assert "33.33 %" in line
    assert line.count("█") == 10
    assert sum("responses" in line for line in lines) == 1
    assert any("Send the tenant" in li and "docs/causes.md#key_tenant" in li for li in lines)
    assert "unknown: 0.00 % of the misses" in done.stdout
    assert "note: a note" in done.stdout
    assert len(calls) == 1


def test_nothing_is_printed_where_nothing_missed() -> None:
    console = Console(record=True, width=100)
    causes(console, FACTS | {"misses": 0})
    assert console.export_text() == ""
