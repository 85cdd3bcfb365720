"""Composed logs of which the truth is known: which of six fields change answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import orjson
import pyarrow as pa

from warmup_lib.dimensions.reading import Log, read_log
from warmup_lib.dimensions.study import Study
from warmup_lib.tables import REQUESTS

SIX = ("session_id", "user_segment", "ab_arm", "hour", "extra.device", "extra.region")
_BEGIN = int(datetime(2026, 3, 9, tzinfo=UTC).timestamp() * 1e6)
_HOUR = 3_600_000_000

Ints = np.ndarray[Any, np.dtype[np.int64]]
Drawn = Mapping[str, Ints]


def draw(seed: int, rows: int, questions: int = 60) -> dict[str, Ints]:
    """Six fields and a question for each request; the region goes along with the segment."""
    rng = np.random.default_rng(seed)
    drawn = {
        "question": np.minimum(rng.zipf(1.3, rows), questions) - 1,
        "session_id": rng.integers(0, max(2, rows // 8), rows),
        "user_segment": rng.integers(0, 4, rows),
        "ab_arm": rng.integers(0, 2, rows),
        "hour": rng.integers(0, 24, rows),
        "extra.device": rng.integers(0, 3, rows),
    }
    other = rng.integers(0, 4, rows)
    drawn["extra.region"] = np.where(rng.random(rows) < 0.9, drawn["user_segment"], other)
    return drawn


def requests(
    drawn: Drawn, answer: Sequence[str] | Ints, extra: Mapping[str, Sequence[Any]] | None = None
) -> pa.Table:
    """Return rows of `requests`, evenly spread over the hours that were drawn.

    Args:
        drawn: By field, numbers that stand for values; `question` too.
        answer: What tells the answer apart, beside the question.
        extra: Further fields of `extra`.
    """
    rows = len(drawn["question"])
    hours = drawn.get("hour", np.arange(rows) % 24)
    # Each request lies in its hour, on a day of its own thousandth, so that time goes on.
    at = _BEGIN + (np.arange(rows) // 1000 % 7) * 24 * _HOUR + hours * _HOUR
    at = at + np.arange(rows) % 1000 * 1_000_000
    beside = {n.removeprefix("extra."): v for n, v in drawn.items() if n.startswith("extra.")}
    columns: dict[str, Any] = {
        "request_id": [f"r{i}" for i in range(rows)],
        "ts": pa.array(at, pa.timestamp("us", tz="UTC")),
        "tenant": ["acme"] * rows,
        "model": ["m"] * rows,
        "prompt": [f"question {q}" for q in drawn["question"]],
        "text_digest": [f"t{q}" for q in drawn["question"]],
        "response_digest": [f"d{q}" for q in drawn["question"]],
        "response": [f"answer {q} {a}" for q, a in zip(drawn["question"], answer, strict=True)],
        "extra": [
            orjson.dumps(
                {n: f"{n}{v[i]}" for n, v in beside.items()}
                | {n: v[i] for n, v in (extra or {}).items()}
            ).decode()
            for i in range(rows)
        ],
    }
    for name in ("session_id", "user_segment", "ab_arm"):
        if name in drawn:
            columns[name] = [f"{name}{v}" for v in drawn[name]]
    schema = REQUESTS.schema
    return pa.table(
        {f.name: columns.get(f.name, pa.nulls(rows, f.type)) for f in schema}, schema=schema
    )


def read(rows: pa.Table, *without: str, zone: str = "UTC") -> Log:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("composed", rows)
    return read_log(connection, "composed", zone, without)


def study(drawn: Drawn, answer: Callable[[Drawn], Ints]) -> Study:
    return Study(read(requests(drawn, answer(drawn))))
