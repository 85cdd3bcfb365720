"""Hand-made requests for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from warmup_lib.keys import Keys, Request
from warmup_lib.lake import Lake
from warmup_lib.tables import REQUESTS

KEYS = Keys(b"a secret for the tests of distil")
START = datetime(2026, 3, 14, 8, tzinfo=UTC)

Row = dict[str, Any]


def make_request(number: int, prompt: str, tenant: str = "acme", **fields: Any) -> Row:
    """Return one row of `requests`, `number` seconds after the start of the day."""
    system_prompt = fields.get("system_prompt")
    identity = KEYS.identity(Request(tenant, "m", prompt, system_prompt=system_prompt))
    row: Row = dict.fromkeys(REQUESTS.schema.names)
    row |= {
        "request_id": f"r{number:05}",
        "ts": START + timedelta(seconds=number),
        "tenant": tenant,
        "model": "m",
        "prompt": prompt,
        "params": "{}",
        "status": 200,
        "warmup": False,
        "health": False,
        "cache_hit": False,
        "bypass": False,
        "redacted": False,
        "text_digest": identity.text,
        "context_digest": identity.context,
        "response_digest": identity.response,
        "head_digest": identity.head,
        "dialect": "jsonl",
        "source": "f0",
        "position": number,
    }
    return row | fields


@pytest.fixture(scope="session")
def request_row() -> Callable[..., Row]:
    """Return a function that makes one row of `requests`."""
    return make_request


@pytest.fixture(scope="session")
def store_requests() -> Callable[..., Lake]:
    """Return a function that stores a day's requests in the lake at a folder, in given parts."""

    def store(root: Path, *parts: list[Row], day: str = "2026-03-14") -> Lake:
        lake = Lake(str(root))
        for rows in parts:
            table = pa.Table.from_pylist(rows, schema=REQUESTS.schema)
            lake.append("requests", {"day": day}, table)
        return lake

    return store
