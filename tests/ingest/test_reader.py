from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from warmup_lib.errors import InputDataError
from warmup_lib.ingest import reader
from warmup_lib.ingest.reader import read_requests
from warmup_lib.tables import REQUESTS

from .conftest import AS_OF


def test_it_returns_what_ingest_would_store_and_stores_nothing(
    tmp_path: Path,
    canonical: Any,
    write: Any,
    config: Any,
    keys: Any,
    ingest: Any,
    stored: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(reader, "_BATCH", 4)
    rows = [canonical(n, prompt=f"mail {n}@b.io") for n in range(10)]
    file = write(tmp_path / "log", *rows, rows[3], b"broken", {"request_id": "x"})
    with caplog.at_level(logging.WARNING):
        found = read_requests([file], "auto", config, keys, AS_OF)
    assert found.schema == REQUESTS.schema
    assert not (tmp_path / "lake").exists()
    assert caplog.messages == ["2 of 13 rows can't be used (invalid_json: 1, missing_field: 1)"]
    ingest(file)
    assert found.to_pylist() == stored("requests")
    assert found["prompt"][0].as_py() == "mail <EMAIL>"


def test_retries_are_found_across_files(
    tmp_path: Path, canonical: Any, write: Any, config: Any, keys: Any
) -> None:
    files = [write(tmp_path / n, canonical(1), canonical(i)) for i, n in ((2, "a"), (3, "b"))]
    found = read_requests(files, "jsonl", config, keys, AS_OF)
    assert found["request_id"].to_pylist() == ["req-1", "req-2", "req-3"]


def test_an_empty_file_gives_no_rows(tmp_path: Path, config: Any, keys: Any) -> None:
    (tmp_path / "log").touch()
    found = read_requests([tmp_path / "log"], "auto", config, keys, AS_OF)
    assert (found.num_rows, found.schema) == (0, REQUESTS.schema)


def test_no_usable_row_is_an_error_that_tells_why(
    tmp_path: Path, write: Any, config: Any, keys: Any
) -> None:
    file = write(tmp_path / "log", b"secret words", b"{}")
    with pytest.raises(InputDataError) as error:
        read_requests([file], "jsonl", config, keys, AS_OF)
    assert str(error.value) == "none of 2 rows can be used (invalid_json: 1, missing_field: 1)"
