from __future__ import annotations

from pathlib import Path

import pytest

from warmup_lib.airflow.inbox import inbox_files


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    for name in ("b.jsonl", "a.jsonl.gz", ".hidden", "_partial.jsonl", "old/c.jsonl"):
        (tmp_path / name).touch()
    return tmp_path


def test_no_inbox_has_no_files() -> None:
    assert inbox_files(None) == []


def test_a_folder_gives_its_finished_files(inbox: Path) -> None:
    assert inbox_files(str(inbox)) == [inbox / "a.jsonl.gz", inbox / "b.jsonl"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("*.jsonl", ["b.jsonl"]), ("**/*.jsonl", ["b.jsonl", "old/c.jsonl"]), ("*.csv", [])],
)
def test_a_glob_gives_what_it_matches(inbox: Path, pattern: str, names: list[str]) -> None:
    assert inbox_files(f"{inbox}/{pattern}") == [inbox / name for name in names]


def test_a_relative_glob_is_taken_from_the_working_folder(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inbox)
    assert inbox_files("old/*") == [Path("old/c.jsonl")]


def test_a_folder_that_is_not_there_yet_has_no_files(tmp_path: Path) -> None:
    assert inbox_files(str(tmp_path / "none")) == []
