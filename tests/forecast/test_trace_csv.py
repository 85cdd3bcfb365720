"""Rows of CSV with quotes in the right and in the wrong places."""

from __future__ import annotations

import csv
import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.forecast.trace_csv import read_rows


def rows_of(text: str) -> tuple[list[list[str]], dict[str, int]]:
    rejected: Counter[str] = Counter()
    return list(read_rows(io.StringIO(text, newline=""), rejected)), dict(rejected)


TEXT = st.text(st.sampled_from("ab ,\"'\n\r5:-"), max_size=8)


@given(st.lists(st.tuples(st.sampled_from(["ts", "7"]), TEXT.map("x".__add__), TEXT), min_size=1))
def test_what_a_writer_quoted_is_read_back(rows: list[tuple[str, str, str]]) -> None:
    # Line ends between quotes, too, where no line of them would be a row.
    kept = [tuple(field.replace(",", ";") for field in row) for row in rows]
    with io.StringIO(newline="") as text:
        csv.writer(text).writerows(kept)
        assert rows_of(text.getvalue()) == ([list(row) for row in kept], {})


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quote_that_nothing_closes_costs_its_own_line(end: str) -> None:
    lines = ["ts,item", "1,a", '2,"b', "3,c", '4,"d"', '5,"e""', "6,f"]
    kept, rejected = rows_of(end.join(lines))
    assert kept == [["ts", "item"], ["1", "a"], ["3", "c"], ["4", "d"], ["6", "f"]]
    assert rejected == {"unclosed quote": 2}


def test_a_quote_that_a_later_row_would_close_costs_its_own_line() -> None:
    kept, rejected = rows_of('ts,item\n1,"a\n2026-03-16T09:00:00Z,b\n3,"\n4,d\n5,e"\n')
    assert kept == [["ts", "item"], ["2026-03-16T09:00:00Z", "b"], ["4", "d"], ["5", 'e"']]
    assert rejected == {"unclosed quote": 2}


def test_lines_are_found_again_however_far_a_quote_reached() -> None:
    count = 30_000
    body = "".join(f"no row {i}\n" for i in range(count))
    kept, rejected = rows_of('ts,item\n1,"a\n' + body + "2,b\n")
    assert len(kept) == count + 2
    assert kept[-1] == ["2", "b"]
    assert rejected == {"unclosed quote": 1}


def test_a_quoted_text_may_have_line_ends() -> None:
    kept, rejected = rows_of('ts,item\n1,"first line\nsecond, with a comma\n\nlast ""one"""\n2,b\n')
    assert kept[1:] == [["1", 'first line\nsecond, with a comma\n\nlast "one"'], ["2", "b"]]
    assert not rejected


def test_other_lines_that_are_no_csv_are_counted() -> None:
    long = "x" * (csv.field_size_limit() + 1)
    kept, rejected = rows_of(f'ts,item\n1,"a"b\n\n2,{long}\n3,c\n')
    assert kept == [["ts", "item"], ["3", "c"]]
    assert rejected == {"invalid csv": 2}
