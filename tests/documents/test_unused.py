"""What of the user's lists is not used is counted and told, with the line where it begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warmup_lib.config import Config
from warmup_lib.documents.stage import run
from warmup_lib.lake import Lake
from warmup_lib.stage import StageReport

DAY = "2026-03-14"
ROW = {"tenant": "acme", "model": "small", "prompt": "Where is my parcel?"}


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", "a secret of the unused lists' tests")


def written(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def reported(tmp_path: Path, **sources: Any) -> StageReport:
    config = Config.model_validate({"plan": {"sources": sources}})
    return run(Lake(str(tmp_path / "lake")), DAY, config)


def test_rows_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    rows = [{**ROW, "prompt": f"number {'x' * n}"} for n in range(5)]
    path = written(tmp_path / "pinned.jsonl", *rows)
    report = reported(tmp_path, pinned={"path": path, "limit": 2})
    assert report.facts["unused"] == {"beyond_limit": 3}
    assert report.notes == (
        "plan.sources.pinned: 3 rows beyond its limit of 2: not used (the first in line 3)",
    )


def test_one_request_twice_is_told_and_the_first_answer_counts(tmp_path: Path) -> None:
    path = written(
        tmp_path / "pinned.jsonl",
        {**ROW, "response": "In the van."},
        {**ROW, "response": "At the gate."},
        {**ROW, "response": "In the van."},
        {**ROW, "prompt": "another"},
    )
    sets = {"en": written(tmp_path / "en.jsonl", {**ROW, "response": "In the van."})}
    report = reported(tmp_path, pinned={"path": path}, languages={"sets": sets})
    assert report.facts["unused"] == {"other_answer": 1, "repeated": 1}
    assert report.notes == (
        "plan.sources.pinned: 1 row with another answer to an earlier row's request, whose answer "
        "counts: not used (the first in line 2)",
        "plan.sources.pinned: 1 row like an earlier row: not used (the first in line 3)",
    )


def test_an_answer_of_another_list_goes_first_where_it_is_read_first(tmp_path: Path) -> None:
    path = written(tmp_path / "pinned.jsonl", {**ROW, "response": "At the gate."})
    sets = {"en": written(tmp_path / "en.jsonl", {**ROW, "response": "In the van."})}
    report = reported(tmp_path, pinned={"path": path}, languages={"sets": sets})
    assert report.facts["unused"] == {"other_answer": 1}
    assert report.notes[0].startswith("plan.sources.pinned: 1 row with another answer")


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_list_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "pinned.jsonl"
    path.write_text(content)
    report = reported(tmp_path, pinned={"path": str(path)})
    assert report.facts["unused"] == {"empty_list": 1}
    assert report.notes == ("plan.sources.pinned: the list is empty, nothing of it is planned",)


def test_samples_beyond_the_limit_are_those_of_cold_intents(tmp_path: Path) -> None:
    rows = [{**ROW, "prompt": f"sample {'x' * n}", "intent": "parcel"} for n in range(4)]
    classifiers = {"router": written(tmp_path / "samples.jsonl", *rows)}
    report = reported(tmp_path, few_shot={"classifiers": classifiers, "limit": 3})
    assert report.facts["listed"] == {"few_shot": 4}
    assert report.notes == (
        "plan.sources.few_shot.router: 1 row beyond its limit of 3, those of the intents least "
        "asked for: not used",
    )


def test_a_list_that_is_used_whole_is_no_news(tmp_path: Path) -> None:
    path = written(tmp_path / "pinned.jsonl", ROW, {**ROW, "system_prompt": "Be brief."})
    report = reported(tmp_path, pinned={"path": path})
    assert (report.facts["unused"], report.notes) == ({}, ())
