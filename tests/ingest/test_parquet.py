from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warmup_lib.ingest.outcome import Reason
from warmup_lib.ingest.parquet import read_parquet


def rows(path: Path) -> list[Any]:
    with path.open("rb") as handle:
        return list(read_parquet(handle))


def test_values_come_as_json_would_hold_them(tmp_path: Path) -> None:
    at = datetime(2026, 3, 14, tzinfo=UTC)
    table = pa.table(
        {
            "text": ["a", None],
            "count": [1.0, math.nan],
            "at": pa.array([at, None], pa.timestamp("us", tz="UTC")),
            "nested": [{"n": [1, 2], "when": at}, None],
            "cost": [Decimal("0.25"), None],
            "blob": [b"x", None],
        }
    )
    pq.write_table(table, tmp_path / "f")
    first, second = rows(tmp_path / "f")
    assert first.value == {
        "text": "a",
        "count": 1.0,
        "at": at,
        "nested": {"n": [1, 2], "when": "2026-03-14T00:00:00+00:00"},
        "cost": "0.25",
        "blob": "b'x'",
    }
    assert set(second.value.values()) == {None}
    assert [(r.position, r.offset, r.size) for r in (first, second)] == [
        (1, None, None),
        (2, None, None),
    ]


def test_canonical_rows_may_come_as_parquet(
    tmp_path: Path, canonical: Any, ingest: Any, stored: Any
) -> None:
    made = [canonical(n, params={"n": n}, chunk_ids=["a"]) for n in range(2500)]
    pq.write_table(pa.Table.from_pylist(made), tmp_path / "log", row_group_size=1000)
    assert ingest(tmp_path / "log", dialect="auto").facts["rows_kept"] == 2500
    found = stored("requests")
    assert [r["request_id"] for r in found] == [f"req-{n}" for n in range(2500)]
    assert (found[7]["params"], found[7]["chunk_ids"]) == ('{"n":7}', ["a"])


def test_a_file_that_was_cut_or_damaged_says_so(tmp_path: Path) -> None:
    table = pa.table({"n": list(range(200_000))})
    pq.write_table(table, tmp_path / "f", row_group_size=50_000, compression="zstd")
    whole = (tmp_path / "f").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    (row,) = rows(tmp_path / "cut")
    assert (row.position, row.reason) == (1, Reason.TRUNCATED)

    start = pq.ParquetFile(tmp_path / "f").metadata.row_group(2).column(0).dictionary_page_offset
    (tmp_path / "bad").write_bytes(whole[:start] + b"\xff" * 64 + whole[start + 64 :])
    *good, last = rows(tmp_path / "bad")
    assert [r.value["n"] for r in good] == list(range(len(good)))
    assert 99_000 <= len(good) <= 100_000
    assert (last.position, last.reason) == (len(good) + 1, Reason.DAMAGED)


def test_a_time_that_python_cannot_hold_costs_its_row_only(
    tmp_path: Path, ingest: Any, stored: Any
) -> None:
    micro = pa.timestamp("us")
    now = 1_773_482_400_000_000
    table = pa.table(
        {
            "request_id": [f"r{n}" for n in range(4)],
            "call_type": ["acompletion"] * 4,
            "team_id": ["acme"] * 4,
            "model": ["smollm2"] * 4,
            "messages": [[{"role": "user", "content": "hi"}]] * 4,
            "startTime": pa.array([now, 2**62, -(2**62), now], micro),
            "endTime": pa.array([None] * 4, micro),
            "seen": pa.array(
                [{"at": [2**62]}, None, None, None], pa.struct({"at": pa.list_(micro)})
            ),
        }
    )
    pq.write_table(table, tmp_path / "log")
    facts = ingest(tmp_path / "log", dialect="litellm").facts
    assert (facts["rows_kept"], facts["quarantine"]) == (2, {"bad_timestamp": 2})
    first, last = stored("requests")
    assert (first["request_id"], last["request_id"]) == ("r0", "r3")
    assert "4611686018427387904 timestamp[us]" in first["extra"]


def test_text_that_is_not_utf8_costs_its_row_only(tmp_path: Path) -> None:
    text = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    pq.write_table(pa.table({"t": text}), tmp_path / "f")
    found = [(r.position, r.reason or r.value) for r in rows(tmp_path / "f")]
    assert found == [(1, {"t": "a"}), (2, Reason.INVALID_UTF8), (3, {"t": "c"})]
