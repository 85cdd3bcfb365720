"""What the ingest tests share: settings, keys, an empty lake and canonical rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from warmup_lib.config import Config
from warmup_lib.ingest.stage import run
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import StageReport, silent

AS_OF = datetime(2026, 3, 15, 12, tzinfo=UTC)

Ingest = Callable[..., StageReport]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(lake=f"file://{tmp_path}/lake", timezone="Asia/Shanghai")


@pytest.fixture(scope="session")
def keys() -> Keys:
    return Keys(b"a secret of the tests")


@pytest.fixture
def lake(config: Config) -> Lake:
    return Lake(config.lake)


@pytest.fixture
def ingest(lake: Lake, config: Config, keys: Keys) -> Ingest:
    def call(*files: Path, dialect: str = "jsonl", **other: Any) -> StageReport:
        report = run(lake, files, dialect, config, keys, silent, other.get("as_of", AS_OF))
        facts = report.facts
        parts = ("rows_kept", "rows_quarantined", "duplicates")
        assert facts["rows_read"] == sum(facts[name] for name in parts)
        assert facts["rows_quarantined"] == sum(facts["quarantine"].values())
        return report

    return call


@pytest.fixture(scope="session")
def canonical() -> Callable[..., dict[str, Any]]:
    """Return a maker of rows that hold just what is required; a field given as None is left out."""

    def make(number: int = 1, **fields: Any) -> dict[str, Any]:
        row = {
            "request_id": f"req-{number}",
            "ts": f"2026-03-14T10:00:{number % 60:02d}Z",
            "tenant": "acme",
            "model": "smollm2",
            "prompt": f"question {number}",
        }
        return {k: v for k, v in {**row, **fields}.items() if v is not None}

    return make


@pytest.fixture(scope="session")
def write() -> Callable[..., Path]:
    """Return a writer of JSON lines."""

    def to(path: Path, *rows: dict[str, Any] | bytes) -> Path:
        lines = [row if isinstance(row, bytes) else orjson.dumps(row) for row in rows]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    return to


@pytest.fixture
def stored(lake: Lake) -> Callable[[str], list[dict[str, Any]]]:
    """Return a reader of all rows of a table."""

    def rows(table: str) -> list[dict[str, Any]]:
        found = [r for p in lake.partitions(table) for r in lake.read(table, p).to_pylist()]
        return sorted(found, key=lambda r: r["position"])

    return rows
