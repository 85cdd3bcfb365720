"""The chunks of a day are the configured documents, redacted, each under its tenant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warmup_lib.config import Config
from warmup_lib.documents.stage import run
from warmup_lib.embed.encoder import MAX_CHARS
from warmup_lib.errors import ConfigError, InputDataError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake

DAY = "2026-03-14"
SECRET = "a secret of the documents' tests"
KEYS = Keys(SECRET.encode())


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def config(**paths: Any) -> Config:
    documents = [{"tenant": tenant, "path": str(path)} for tenant, path in paths.items()]
    return Config.model_validate({"layers": {"retrieval": {"documents": documents}}})


def page(folder: Path, name: str, *chunks: str) -> Path:
    folder.mkdir(exist_ok=True)
    body = "\n".join(f"<!-- {name}#{n} -->\n{chunk}" for n, chunk in enumerate(chunks, 1))
    (folder / f"{name}.md").write_text(body, encoding="utf-8")
    return folder


def test_chunks_of_two_tenants_are_kept_apart(tmp_path: Path, lake: Lake) -> None:
    one = page(tmp_path / "one", "guide", "Close the valve.", "Mail bob@example.org first.")
    two = page(tmp_path / "two", "guide", "Close the valve.")
    report = run(lake, DAY, config(acme=one, beta=two))
    rows = lake.read("chunks", {"day": DAY}).to_pylist()
    assert [(r["tenant"], r["chunk_id"], r["document"], r["text"]) for r in rows] == [
        ("acme", "guide#1", "guide", "Close the valve."),
        ("acme", "guide#2", "guide", "Mail <EMAIL> first."),
        ("beta", "guide#1", "guide", "Close the valve."),
    ]
    assert [r["text_digest"] for r in rows] == [KEYS.text_digest(r["text"]) for r in rows]
    assert [r["chunk_digest"] for r in rows] == [KEYS.chunk_digest(r["chunk_id"]) for r in rows]
    assert report.facts == {
        "chunks": 3,
        "documents": 2,
        "tenants": 2,
        "redacted": 1,
        "overlong": 0,
        "bad": {},
        "listed": {},
        "unused": {},
    }
    assert (report.rows_in, report.rows_out, report.notes) == (3, 3, ())


def test_bad_documents_are_told_of_and_sink_nothing(tmp_path: Path, lake: Lake) -> None:
    folder = page(tmp_path / "docs", "good", "one", "x" * (MAX_CHARS + 1))
    (folder / "empty.md").write_text("", encoding="utf-8")
    (folder / "same.md").write_text("<!-- good#1 -->\nanother text", encoding="utf-8")
    report = run(lake, DAY, config(acme=folder))
    rows = lake.read("chunks", {"day": DAY}).to_pylist()
    assert [(r["chunk_id"], r["text"][:3]) for r in rows] == [("good#1", "one"), ("good#2", "xxx")]
    assert report.facts["bad"] == {"doubled_id": 1, "no_chunk": 1}
    assert report.notes == (
        "documents left out, doubled_id: 1 (first: same)",
        "documents left out, no_chunk: 1 (first: empty)",
        "chunks longer than 20,000 characters, which get no vector: 1",
    )


def test_a_rerun_follows_the_documents_and_no_documents_leave_no_chunks(
    tmp_path: Path, lake: Lake
) -> None:
    folder = page(tmp_path / "docs", "a", "first", "second")
    first = run(lake, DAY, config(acme=folder))
    before = [p.read_bytes() for p in (tmp_path / "lake").rglob("*.parquet")]
    assert run(lake, DAY, config(acme=folder)).facts == first.facts
    assert [p.read_bytes() for p in (tmp_path / "lake").rglob("*.parquet")] == before
    page(folder, "a", "first")
    assert run(lake, DAY, config(acme=folder)).rows_out == 1
    report = run(lake, DAY, Config())
    assert (report.rows_out, report.facts["chunks"]) == (0, 0)
    assert lake.partitions("chunks") == []


def test_wrong_settings_say_so(tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        run(lake, DAY, config(acme=tmp_path / "absent"))
    folder = page(tmp_path / "docs", "a", "first")
    with pytest.raises(InputDataError, match="tenant"):
        run(lake, DAY, config(**{"*": folder}))
    with pytest.raises(InputDataError, match="full name"):
        run(lake, DAY, config(**{"acme-*": folder}))
    lake.pin({"secret id": KEYS.secret_id}, record=True)
    run(lake, DAY, config(acme=folder))
    monkeypatch.setenv("WARMUP_SECRET", "another secret altogether")
    with pytest.raises(ConfigError, match="secret id"):
        run(lake, DAY, config(acme=folder))
