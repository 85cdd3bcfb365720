"""What of the user's lists is not used is counted and told, with the line where it begins."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.plan.building import rows_of
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


def test_rows_that_may_not_be_meant_are_told_with_their_first_line(tmp_path: Path) -> None:
    logged = {"request_id": "1", "ts": datetime(2026, 3, 14, tzinfo=UTC)}
    logged |= {"tenant": "acme", "model": "small", "prompt": "hello"}
    lake = Lake(str(tmp_path / "lake"))
    lake.replace("requests", {"day": DAY}, rows_of("requests", [logged]))
    path = written(
        tmp_path / "pinned.jsonl",
        ROW,
        {**ROW, "prompt": "Write to jane.doe@example.com"},
        {**ROW, "tenant": "acmee"},
        {**ROW, "model": "smal"},
        {**ROW, "prompt": "another", "temprature": 0.2, "headers": {}},
    )
    report = reported(tmp_path, pinned={"path": path})
    assert report.facts["unused"] == {
        "redacted": 1,
        "unknown_field": 1,
        "unknown_model": 1,
        "unknown_tenant": 1,
    }
    assert sorted(report.notes) == [
        "plan.sources.pinned: 1 row in which personal data was redacted: not used (the first in "
        "line 2)",
        "plan.sources.pinned: 1 row of a model that no logged request names, so no host may serve "
        "it (the first in line 4)",
        "plan.sources.pinned: 1 row of a tenant that no logged request is of (the first in line 3)",
        "plan.sources.pinned: 1 row with a field that has no meaning and is ignored (the first in "
        "line 5)",
    ]
