"""What the sample log's tests share: one small log, and the real data's folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from samples.generate import generate
from samples.shipped import Shipped

Row = dict[str, Any]


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of all fourteen days at a tenth of the size."""
    out = tmp_path_factory.mktemp("log")
    generate(out, Shipped(), scale=0.1)
    return out


@pytest.fixture(scope="session")
def rows(log: Path) -> list[Row]:
    found = []
    for path in sorted(log.glob("requests-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found += [json.loads(line) for line in file]
    return found


@pytest.fixture(scope="session")
def asked(rows: list[Row]) -> list[Row]:
    """Requests of people: without the health checks, each id once."""
    return list({r["request_id"]: r for r in rows if "session_id" in r}.values())
