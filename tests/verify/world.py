"""A small window of requests and the plan that meets it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from warmup_lib.tables import REQUESTS

NOON = datetime(2026, 3, 15, 12, tzinfo=UTC)


def request(number: int, answer: int, **fields: Any) -> dict[str, Any]:
    """Return a row whose four digests are made of `answer` and whose id of `number`."""
    row: dict[str, Any] = dict.fromkeys(REQUESTS.schema.names)
    flags = dict.fromkeys(["warmup", "health", "cache_hit", "bypass", "redacted"], False)
    return (
        row
        | flags
        | {
            "request_id": f"r{number}",
            "ts": NOON + timedelta(minutes=number),
            "tenant": "acme",
            "model": "m",
            "prompt": f"question {answer}",
            "system_prompt": "you help",
            "response": "answer",
            "text_digest": f"{answer:032x}",
            "context_digest": "c" * 32,
            "response_digest": f"{answer:032x}",
            "head_digest": f"{answer:032x}",
            "dialect": "jsonl",
            "source": "s",
            "position": number,
        }
        | fields
    )


def requests(*rows: dict[str, Any]) -> pa.Table:
    """Return rows as the `requests` table has them."""
    return pa.Table.from_pylist(list(rows), schema=REQUESTS.schema)
