"""A folder of files that are broken in every way we know of."""

from __future__ import annotations

import gzip
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warmup_lib.ingest.lines import MAX_LINE
from warmup_lib.ingest.reader import read_requests

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BOM = b"\xef\xbb\xbf"


def build(folder: Path, canonical: Any) -> dict[str, tuple[int, dict[str, int]]]:
    """Fill `folder`; return for each file how many rows are kept and what is quarantined."""

    def line(number: int, **fields: Any) -> bytes:
        return orjson.dumps(canonical(number, **fields)) + b"\n"

    good = [line(n) for n in range(100)]
    noise = random.Random(1)
    packed = gzip.compress(
        b"".join(line(n, extra={"noise": noise.randbytes(300).hex()}) for n in range(1000, 1400))
    )
    stamps = [
        1773455400,
        1773455400_000,
        1773455400_000_000,
        "1773455400",
        "2026-03-14T10:30:00",
        "2026-03-14T10:30:00+08:00",
    ]
    files: dict[str, tuple[bytes, int, dict[str, int]]] = {
        "cut.jsonl.gz": (packed[: len(packed) // 2], -1, {"truncated": 1}),
        "invalid_json.jsonl": (
            good[0] + b'{"request_id": \n[1]\n"text"\nnot json\n' + good[1],
            2,
            {"invalid_json": 2, "not_an_object": 2},
        ),
        "invalid_utf8.jsonl": (
            good[2] + good[3].replace(b"question", b"quest\xff\xfe") + good[4],
            2,
            {"invalid_utf8": 1},
        ),
        "nul.jsonl": (
            good[5] + good[6].replace(b"question", b"ques\0tion") + b"\0\0\0\0\n" + good[7],
            2,
            {"nul_byte": 2},
        ),
        "long_line.jsonl": (
            good[8] + line(9, prompt="x" * 20_000_000) + good[10],
            2,
            {"too_long": 1},
        ),
        "missing.jsonl": (
            b"".join(
                line(11, **{name: None})
                for name in ("request_id", "ts", "tenant", "model", "prompt")
            )
            + good[12],
            1,
            {"missing_field": 5},
        ),
        "types.jsonl": (
            line(13, prompt=5)
            + line(14, tenant=["a"])
            + line(15, params="none")
            + line(16, prompt_tokens="many")
            + line(17, prompt_tokens=-1)
            + line(18, messages={}, prompt=None)
            + line(19, ts=[])
            + line(20, tenant="*")
            + line(21, prompt=" ")
            + line(22, messages=[{"role": "user"}, 5], prompt=None)
            + good[23],
            1,
            {
                "wrong_type": 6,
                "out_of_range": 1,
                "bad_tenant": 1,
                "empty_prompt": 1,
                "bad_messages": 1,
            },
        ),
        "duplicates.jsonl": (
            good[24] + good[24] + line(24, response="late") + line(24, prompt="another") + good[25],
            2,
            {"id_conflict": 1},
        ),
        "stamps.jsonl": (
            b"".join(line(30 + n, ts=stamp) for n, stamp in enumerate(stamps))
            + line(40, ts="2027-01-01T00:00:00Z")
            + line(41, ts="soon"),
            len(stamps),
            {"future_timestamp": 1, "bad_timestamp": 1},
        ),
        "empty.jsonl": (b"", 0, {}),
        "blank.jsonl": (b"\n\r\n  \n", 0, {}),
        "bom.jsonl": (BOM + good[50] + good[51], 2, {}),
        "crlf.jsonl": ((good[52] + good[53]).replace(b"\n", b"\r\n"), 2, {}),
        "no_end.jsonl": (good[54] + good[55].rstrip(b"\n"), 2, {}),
        "deep.jsonl": (
            line(56, extra={"x": "@"}).replace(b'"@"', b"[" * 900 + b"]" * 900) + good[57],
            1,
            {"too_deep": 1},
        ),
    }
    for name, (content, _, _) in files.items():
        (folder / name).write_bytes(content)
    return {name: (kept, reasons) for name, (_, kept, reasons) in files.items()}


def test_a_folder_of_broken_files(tmp_path: Path, canonical: Any, ingest: Any, stored: Any) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    expected = build(folder, canonical)
    for name, (kept, reasons) in expected.items():
        facts = ingest(folder / name).facts
        assert facts["quarantine"] == reasons, name
        if kept >= 0:
            assert facts["rows_kept"] == kept, name
        else:
            assert 120 < facts["rows_kept"] < 280, name

    rows, bad = stored("requests"), stored("quarantine")
    assert Counter(r["reason"] for r in bad) == sum(
        (Counter(reasons) for _, reasons in expected.values()), Counter()
    )
    assert len({(r["tenant"], r["request_id"]) for r in rows}) == len(rows)
    assert {r["field"] for r in bad if r["reason"] == "missing_field"} == {
        "request_id", "ts", "tenant", "model", "prompt",
    }  # fmt: skip


def test_all_of_them_at_once_and_again(tmp_path: Path, canonical: Any, ingest: Any) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    build(folder, canonical)
    files = sorted(folder.iterdir())
    first = ingest(*files, dialect="auto")
    assert first.facts["rows_kept"] > 120
    assert first.facts["days"] == ["2026-03-14"]
    assert "holds no rows: blank.jsonl, empty.jsonl" in first.notes
    assert "1 times without zone were taken as Asia/Shanghai" in first.notes
    again = ingest(*files, dialect="auto")
    assert again.facts["rows_kept"] == again.facts["rows_quarantined"] == 0
    assert again.facts["duplicates"] == first.facts["rows_read"]


def test_the_place_of_a_bad_row_leads_back_to_it(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, stored: Any
) -> None:
    bad = b'{"request_id": 7}'
    file = write(tmp_path / "log.jsonl", BOM + orjson.dumps(canonical(1)), b"", bad, canonical(2))
    ingest(file)
    (row,) = stored("quarantine")
    assert (row["position"], row["reason"], row["field"]) == (2, "wrong_type", "request_id")
    assert row["dialect"] == "jsonl"
    start = row["byte_offset"]
    assert file.read_bytes()[start : start + row["bytes"]] == bad + b"\n"


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_a_packed_file_that_breaks_off_keeps_what_came_before(
    tmp_path: Path, canonical: Any, ingest: Any, stored: Any, pack: Any
) -> None:
    noise = random.Random(2)
    rows = [canonical(n, extra={"noise": noise.randbytes(400).hex()}) for n in range(800)]
    packed = pack(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    (tmp_path / "whole").write_bytes(packed)
    (tmp_path / "cut").write_bytes(packed[: len(packed) * 3 // 4])
    cut = ingest(tmp_path / "cut").facts
    assert 400 < cut["rows_kept"] < 640
    assert cut["quarantine"] == {"truncated": 1}
    assert stored("quarantine")[0]["position"] == cut["rows_kept"] + 1
    whole = ingest(tmp_path / "whole").facts
    assert (whole["rows_kept"], whole["duplicates"]) == (800 - cut["rows_kept"], cut["rows_kept"])


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_packed_files_in_pieces_and_damaged_ones(
    tmp_path: Path, canonical: Any, ingest: Any, pack: Any
) -> None:
    two = b"".join(pack(orjson.dumps(canonical(n)) + b"\n") for n in range(2))
    (tmp_path / "two").write_bytes(two)
    assert ingest(tmp_path / "two").facts["rows_kept"] == 2
    noise = random.Random(3).randbytes(3000)
    (tmp_path / "bad").write_bytes(two + pack(noise)[:40] + noise)
    bad = ingest(tmp_path / "bad").facts
    assert bad["duplicates"] == 2
    assert "damaged" in bad["quarantine"]


def test_a_line_as_long_as_allowed_is_read(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any
) -> None:
    room = MAX_LINE - len(orjson.dumps(canonical(1, prompt="")))
    fits = write(tmp_path / "fits", canonical(1, prompt="x" * (room - 1)))
    assert ingest(fits).facts["rows_kept"] == 1
    over = write(tmp_path / "over", canonical(2, prompt="x" * (room + 1)), canonical(3))
    assert ingest(over).facts["quarantine"] == {"too_long": 1}


PIECE = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b'{"request_id":"a","ts":1773455400,"tenant":"t","model":"m","prompt":"hi"}\n',
            b'{"request_id":"a","ts":1773455400,"tenant":"t","model":"m","prompt":"ho"}\n',
            b'{"request_id":"b","ts":"x","tenant":"t","model":"m","messages":[{}]}\n',
            b'{"request_id":"c","call_type":"acompletion","startTime":1,"endTime":2}\n',
            BOM,
            b"\x1f\x8b\x08\x00",
            b"\x28\xb5\x2f\xfd",
            b"PAR1",
            b"\r\n",
            b"{}\n",
            b"[" * 2000,
        ]
    ),
)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pieces=st.lists(PIECE, max_size=8))
def test_no_bytes_raise_and_every_row_is_accounted_for(
    pieces: list[bytes], tmp_path: Path, ingest: Any
) -> None:
    file = tmp_path / "any"
    file.write_bytes(b"".join(pieces))
    ingest(file, dialect="auto")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "request_id", "ts", "tenant", "model", "prompt", "system_prompt", "messages", "tools",
        "params", "response", "status", "chunk_ids", "extra", "warmup", "ttft_ms", "ab_score",
        "skip_cache", "metadata", "headers", "call_type", "startTime", "endTime", "cache_hit",
        "completionStartTime", "proxy_server_request", "request_tags", "team_id",
    ]
)  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(row=st.dictionaries(NAMES, JSON), dialect=st.sampled_from(["jsonl", "litellm"]))
def test_no_field_of_any_type_raises(
    row: dict[str, Any], dialect: str, tmp_path: Path, canonical: Any, config: Any, keys: Any
) -> None:
    litellm = {
        "call_type": "acompletion",
        "startTime": 1773455400,
        "endTime": 1773455401,
        "team_id": "acme",
        "proxy_server_request": {"messages": [{"role": "user", "content": "hi"}]},
    }
    good = {**canonical(1), **litellm}
    file = tmp_path / "any"
    whole = orjson.dumps({**good, **row}, option=orjson.OPT_NON_STR_KEYS) if _fits(row) else b"{}"
    file.write_bytes(orjson.dumps({**good, "request_id": "sound"}) + b"\n" + whole)
    found = read_requests([file], dialect, config, keys)
    assert 1 <= found.num_rows <= 2


def _fits(row: dict[str, Any]) -> bool:
    try:
        orjson.dumps(row)
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize(
    ("dialect", "name"), [("jsonl", "ts"), ("litellm", "startTime"), ("litellm", "endTime")]
)
def test_times_out_of_range_are_put_aside_alone(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any, dialect: str, name: str
) -> None:
    wild = [
        "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "0000-01-01T00:00:00Z",
        "2026-02-30T00:00:00Z", "1" * 300, "nan", -5, 1e300, -1e300, 2**63 - 1, 2**64 - 1,
    ]  # fmt: skip
    times = {"startTime": 1773455400, "endTime": 1773455401}
    rows = [
        {**canonical(i), "call_type": "acompletion", "team_id": "acme", **times, name: at}
        | {"messages": [{"role": "user", "content": "hi"}]}
        for i, at in enumerate([1773455402, *wild, 1773455403])
    ]
    facts = ingest(write(tmp_path / "log", *rows), dialect=dialect).facts
    assert facts["rows_kept"] == 2
    counts = facts["quarantine"]
    assert counts.keys() <= {"bad_timestamp", "future_timestamp"}
    assert sum(counts.values()) == len(wild)


def test_a_malformed_message_list_is_put_aside_alone(
    tmp_path: Path, canonical: Any, write: Any, ingest: Any
) -> None:
    parts = [{"type": 5, "text": "x"}]
    row = canonical(1, prompt=None, messages=[{"role": "user", "content": parts}])
    facts = ingest(write(tmp_path / "log", row, canonical(2))).facts
    assert (facts["rows_kept"], facts["quarantine"]) == (1, {"bad_messages": 1})
