"""Traces out of files: every format, every unit of time, and rows that can't be used."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.errors import InputDataError
from warmup_lib.forecast.trace import Trace
from warmup_lib.forecast.trace_file import read_trace

AT = 1_773_651_600  # 2026-03-16T09:00:00Z
UTC_ZONE = ZoneInfo("UTC")


def read(folder: Path, content: str | bytes, zone: str = "UTC") -> Trace:
    path = folder / "trace"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_trace(path, ZoneInfo(zone))


@pytest.mark.parametrize(
    "ts",
    [
        "2026-03-16T09:00:00Z",
        "2026-03-16T09:00:00.000Z",
        "2026-03-16T17:00:00+08:00",
        "2026-03-16T09:00:00",
        "2026-03-16 09:00:00",
        str(AT),
        f"{AT}.0",
        str(AT * 10**3),
        str(AT * 10**6),
        str(AT * 10**9),
    ],
)
def test_a_time_may_be_written_in_many_ways(tmp_path: Path, ts: str) -> None:
    assert read(tmp_path, f"ts,item\n{ts},a\n").at.tolist() == [AT * 10**6]
    assert read(tmp_path, json.dumps({"ts": ts, "item": "a"})).at.tolist() == [AT * 10**6]


def test_a_time_without_zone_is_of_the_zone_given(tmp_path: Path) -> None:
    trace = read(tmp_path, "ts,item\n2026-03-16T17:00:00,a\n", zone="Asia/Shanghai")
    assert trace.at.tolist() == [AT * 10**6]


def test_numbers_that_begin_at_zero_are_seconds(tmp_path: Path) -> None:
    assert read(tmp_path, "0,a\n0.25,b\n7,a\n").at.tolist() == [0, 250_000, 7_000_000]


def test_columns_are_found_by_name_or_stand_in_order(tmp_path: Path) -> None:
    named = read(tmp_path, "item,tenant,bytes,ts,other\na,x,10,1,-\nb,x,20,2,-\na,y,,3,-\n")
    assert named.item.tolist() == [0, 1, 2]
    assert named.size_bytes is not None
    assert named.size_bytes.tolist() == [10.0, 20.0, 0.0]
    assert named.cost_ms is None
    bare = read(tmp_path, "1,a,5.5,10,x\n2,b,6,20,x\n")
    assert bare.cost_ms is not None
    assert bare.cost_ms.tolist() == [5.5, 6.0]
    assert bare.size_bytes is not None


def test_json_lines_know_numbers_and_texts_as_one_item(tmp_path: Path) -> None:
    rows = [{"ts": 1, "item": 12}, {"ts": 2, "item": "12"}, {"ts": 3, "item": "b", "cost_ms": 4}]
    trace = read(tmp_path, "\n".join(map(json.dumps, rows)))
    assert trace.item.tolist() == [0, 0, 1]
    assert trace.cost_ms is not None
    assert trace.cost_ms.tolist() == [0.0, 0.0, 4.0]


def test_rows_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    csv = (
        "ts,item,cost_ms,bytes\n1,a,1,1\nnever,a,1,1\n,a,1,1\n-5,a,1,1\n2,,1,1\n3,b,much,1\n"
        "4,b,-1,1\n5,b,1,nan\n6,b\n7,b,2,2\n"
    )
    trace = read(tmp_path, csv)
    assert trace.at.tolist() == [1_000_000, 7_000_000]
    assert trace.rows_read == 10
    assert trace.rejected == {
        "bad ts": 3,
        "bad item": 1,
        "bad cost_ms": 2,
        "bad bytes": 1,
        "wrong number of columns": 1,
    }
    lines = '{"ts":1,"item":"a"}\nnot json\n[1]\n{"ts":true,"item":"a"}\n{"ts":1,"item":{}}\n'
    trace = read(tmp_path, lines)
    assert trace.accesses == 1
    assert trace.rejected == {"invalid_json": 1, "no object": 1, "bad ts": 1, "bad item": 1}


def test_bytes_that_are_no_text_do_not_sink_a_file(tmp_path: Path) -> None:
    trace = read(tmp_path, b"ts,item\n1,a\n2,\xff\xfe\n3,a\0b\n2026-03-16T\xff\xfe,c\n")
    assert trace.items == 3
    assert trace.rejected == {"bad ts": 1}


WILD = [
    "9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59Z", "9999-12-31", "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00", "2026-02-30T00:00:00Z", "2026-03-01T00:00:00+99:99",
    "2255-07-01T00:00:00Z", "1969-12-31T23:59:59Z", "1e300", "1e25", "-5", "-1e300", "nan", "inf",
    "-inf", "9223372036854775807", "18446744073709551615", "1" * 300,
]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_times_out_of_range_cost_their_own_rows_in_every_format(tmp_path: Path, zone: str) -> None:
    sound = [str(AT * 1000 + i) for i in range(len(WILD) + 1)]
    times = [t for pair in zip(sound, [*WILD, sound[-1]], strict=True) for t in pair]
    for row in ("{},a\n", '{{"ts":"{}","item":"a"}}\n', '{{"timestamp":"{}","hash_ids":[1]}}\n'):
        head = "ts,item\n" if row.startswith("{}") else ""
        trace = read(tmp_path, head + "".join(map(row.format, times)), zone)
        assert trace.rejected == {"bad ts": len(WILD)}, row
        expected = [AT * 10**6 + i * 1000 for i in range(len(sound))]
        assert trace.at.tolist() == [*expected, expected[-1]]


def test_a_wrong_number_does_not_change_what_others_mean(tmp_path: Path) -> None:
    rows = [{"timestamp": t, "hash_ids": [1]} for t in (0, 1500, 10**25, 3000, 2**64 - 1)]
    trace = read(tmp_path, "\n".join(map(json.dumps, rows)))
    assert trace.at.tolist() == [0, 1_500_000, 3_000_000]
    assert trace.rejected == {"bad ts": 2}


def test_amounts_out_of_range_are_refused(tmp_path: Path) -> None:
    trace = read(tmp_path, "ts,item,cost_ms,bytes\n1,a,1e308,1\n2,a,1,1e300\n3,a,1,inf\n4,a,1,1\n")
    assert trace.rejected == {"bad cost_ms": 1, "bad bytes": 2}


def test_long_whole_numbers_are_ids_like_any_other(tmp_path: Path) -> None:
    long = 2**200
    rows = [
        {"ts": 1, "item": long},
        {"ts": 2, "item": str(long)},
        {"ts": 3, "item": long + 1},
        {"ts": 4, "item": 1.5},
        {"ts": 5, "item": long, "tenant": 2**64},
        {"ts": 6, "item": long, "tenant": 2**64 + 1},
        {"ts": 7, "item": long, "tenant": {"name": "acme"}},
    ]
    trace = read(tmp_path, "\n".join(map(json.dumps, rows)))
    assert trace.item.tolist() == [0, 0, 1, 2, 3]
    assert trace.rejected == {"bad item": 1, "bad tenant": 1}
    blocks = [
        {"timestamp": 1, "hash_ids": [2**64, 2**64 + 1]},
        {"timestamp": 2, "hash_ids": [2**64]},
    ]
    assert read(tmp_path, "\n".join(map(json.dumps, blocks))).item.tolist() == [0, 1, 0]
    deep = '{"ts":1,"item":1e3,"x":' + "[" * 1000 + "]" * 1000 + '}\n{"ts":1,"item":"a"}\n'
    assert read(tmp_path, deep).rejected == {"bad item": 1}


def test_a_first_line_that_is_cut_does_not_hide_what_follows(tmp_path: Path) -> None:
    trace = read(tmp_path, '26-03-16", "item": "a"}\n{"ts": 1, "item": "b"}\n')
    assert (trace.accesses, trace.rejected) == (1, {"invalid_json": 1})
    trace = read(tmp_path, "-5,a\n1,b\n")
    assert (trace.accesses, trace.rejected) == (1, {"bad ts": 1})


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
def test_compressed_files_are_told_by_their_content(tmp_path: Path, packed: str) -> None:
    content = b"ts,item\n1,a\n2,b\n"
    if packed == "gzip":
        (tmp_path / "trace").write_bytes(gzip.compress(content))
    else:
        (tmp_path / "trace").write_bytes(zstd.compress(content))
    assert read_trace(tmp_path / "trace", UTC_ZONE).items == 2


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress])
def test_a_file_that_breaks_off_is_read_as_far_as_it_goes(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    rows = "".join(f"{i},{i * 7919 % 1009}\n" for i in range(20_000))
    trace = read(tmp_path, compress(rows.encode())[:-2000])
    assert 0 < trace.accesses < 20_000
    assert trace.rejected["damaged"] == 1
    noise = "".join(f"{i},{i * 7919 % 1009}\n" for i in range(200_000))
    packed = bytearray(compress(noise.encode()))
    packed[len(packed) // 2 :] = bytes(1000)
    trace = read(tmp_path, bytes(packed))
    assert 0 < trace.accesses < 200_000
    assert trace.rejected["damaged"] == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "trace holds no rows"),
        ("ts,item\n", "trace holds no rows"),
        ("a,b\n1,2\n", "needs the columns"),
        ('{"time": 1, "key": 2}\n', "needs the columns"),
        ("ts,item\nnever,a\n", r"none of the 1 rows of trace can be used \(bad ts: 1\)"),
        ('{"timestamp": 0, "hash_ids": []}\n', "holds no access"),
        ('{"timestamp": 0, "hash_ids": null}\n', r"\(bad item: 1\)"),
    ],
)
def test_a_file_without_accesses_is_refused(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(InputDataError, match=says):
        read(tmp_path, content)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="no such trace file"):
        read_trace(tmp_path / "nothing", UTC_ZONE)


def test_a_request_is_the_accesses_to_its_blocks_in_order(tmp_path: Path) -> None:
    rows = [
        {"timestamp": 0, "hash_ids": [0, 1, 2]},
        {"timestamp": 1500, "hash_ids": [0, 3]},
        {"timestamp": 1600, "hash_ids": []},
        {"timestamp": 1700, "hash_ids": "none"},
    ]
    trace = read(tmp_path, "\n".join(map(json.dumps, rows)))
    assert trace.item.tolist() == [0, 1, 2, 0, 3]
    assert trace.at.tolist() == [0, 0, 0, 1_500_000, 1_500_000]
    assert trace.rejected == {"bad item": 1}
    assert trace.rows_read == 4


def test_seconds_of_a_block_trace_are_told_by_their_fractions(tmp_path: Path) -> None:
    rows = [{"timestamp": 61.114, "hash_ids": [1]}, {"timestamp": 62.0, "hash_ids": [2]}]
    assert read(tmp_path, "\n".join(map(json.dumps, rows))).at.tolist() == [61_114_000, 62_000_000]


@pytest.mark.realdata
def test_the_mooncake_trace_is_read_whole(real_data: Path) -> None:
    trace = read_trace(Path(real_data, "mooncake/conversation_trace.jsonl.gz"), UTC_ZONE)
    assert (trace.rows_read, trace.accesses, trace.items) == (12_031, 288_500, 182_790)
    assert trace.at[-1] == 3_536_999_000
    assert not trace.rejected


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_trace_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for head in (b"", b"ts,item\n", b'{"ts":1,"item":"a"}\n'):
        try:
            trace = read(folder, head + content)
        except InputDataError:
            continue
        assert trace.accesses > 0
        assert trace.accesses + sum(trace.rejected.values()) == trace.rows_read


@given(st.datetimes(datetime(2001, 9, 10), datetime(2100, 1, 1)))  # noqa: DTZ001
@settings(max_examples=30, deadline=None)
def test_iso_times_are_exact_to_the_microsecond(
    tmp_path_factory: pytest.TempPathFactory, when: datetime
) -> None:
    trace = read(tmp_path_factory.mktemp("iso"), f"ts,item\n{when.isoformat()}Z,a\n")
    expected = when.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert trace.at.tolist() == [
        (expected.days * 86400 + expected.seconds) * 10**6 + expected.microseconds
    ]
