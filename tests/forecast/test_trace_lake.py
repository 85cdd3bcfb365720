"""Traces out of the lake's requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from warmup_lib.errors import InputDataError
from warmup_lib.forecast.trace_lake import lake_trace
from warmup_lib.lake import Lake
from warmup_lib.tables import REQUESTS

DAY = "2026-03-14"


def store(folder: Path, *rows: dict[str, Any], day: str = DAY) -> Lake:
    lake = Lake(str(folder))
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    full = [
        dict.fromkeys(REQUESTS.schema.names)
        | {
            "request_id": f"r{n}",
            "ts": begin + timedelta(minutes=n),
            "tenant": "acme",
            "model": "m",
        }
        | row
        for n, row in enumerate(rows)
    ]
    lake.replace("requests", {"day": day}, pa.Table.from_pylist(full, schema=REQUESTS.schema))
    return lake


def test_items_are_a_tenants_own(tmp_path: Path) -> None:
    lake = store(
        tmp_path,
        {"response_digest": "a", "head_digest": "h", "text_digest": "t"},
        {"response_digest": "a", "head_digest": "h", "text_digest": "u", "tenant": "zeta"},
        {"response_digest": "b", "head_digest": "h", "text_digest": "t"},
    )
    assert lake_trace(lake, [DAY], "responses").item.tolist() == [0, 1, 2]
    assert lake_trace(lake, [DAY], "prefixes").item.tolist() == [0, 1, 0]
    assert lake_trace(lake, [DAY], "embeddings").item.tolist() == [0, 1, 0]


def test_only_demand_that_asks_caches_is_in_it(tmp_path: Path) -> None:
    lake = store(
        tmp_path,
        {"response_digest": "a"},
        {"response_digest": "a", "warmup": True},
        {"response_digest": "a", "health": True},
        {"response_digest": "a", "bypass": True},
        {"response_digest": None},
        {"response_digest": "a", "cache_hit": True},
    )
    assert lake_trace(lake, [DAY], "responses").accesses == 2


def test_a_hit_saves_what_the_model_took_and_not_what_a_cache_did(tmp_path: Path) -> None:
    lake = store(
        tmp_path,
        {"response_digest": "a", "latency_ms": 900.0, "response": "four"},
        {"response_digest": "a", "latency_ms": 5.0, "cache_hit": True},
        {"response_digest": "b", "response": "größe"},
    )
    trace = lake_trace(lake, [DAY], "responses")
    assert trace.cost_ms is not None
    assert trace.cost_ms.tolist() == [900.0, 900.0, 0.0]
    assert trace.size_bytes is not None
    assert trace.size_bytes.tolist() == [4.0, 4.0, 7.0]
    embeddings = lake_trace(store(tmp_path, {"text_digest": "t"}), [DAY], "embeddings")
    assert (embeddings.cost_ms, embeddings.size_bytes) == (None, None)


def test_days_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    store(tmp_path, {"response_digest": "b"}, day="2026-03-15")
    lake = store(tmp_path, {"response_digest": "a"})
    assert lake_trace(lake, ["2026-03-15", DAY], "responses").item.tolist() == [0, 1]
    assert lake_trace(lake, ["2026-03-15"], "responses").accesses == 1


def test_days_without_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="no requests"):
        lake_trace(store(tmp_path, {"response_digest": "a"}), ["2026-01-01"], "responses")
