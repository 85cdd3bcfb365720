from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samples.documents import cut, from_packages, write


@given(
    st.lists(st.text("abc \t", min_size=1).filter(str.strip), min_size=1, max_size=40),
    st.integers(1, 5),
)
def test_cut_keeps_every_line_in_order_and_leaves_no_part_empty(
    lines: list[str], chunks: int
) -> None:
    parts = cut("\n\n".join(lines), chunks)
    assert len(parts) == chunks
    assert all(part.strip() for part in parts)
    joined = [line for part in parts for line in part.split("\n")]
    assert joined[: len(lines)] == lines
    assert set(joined[len(lines) :]) <= {lines[-1]}


def test_parts_are_of_about_equal_length() -> None:
    parts = cut("\n".join(["x" * 50] * 30), 3)
    assert {len(part) for part in parts} == {509}


def test_pages_come_from_docstrings_of_classes_functions_and_methods() -> None:
    pages = dict(from_packages(["click.option", "json.JSONDecoder.decode", "numpy.where"]))
    assert {len(chunks) for chunks in pages.values()} == {3}
    assert "python" in "\n".join(pages["json.JSONDecoder.decode"]).lower()


def test_a_page_that_nothing_documents_is_named() -> None:
    with pytest.raises(LookupError, match=r"numpy\.no_such_thing"):
        list(from_packages(["numpy.no_such_thing"]))


def test_chunks_are_marked_with_their_ids(tmp_path: Path) -> None:
    assert write(tmp_path / "docs", [("a.b", ["one", "two\nlines"]), ("c", ["three"])]) == 3
    text = (tmp_path / "docs" / "a.b.md").read_text(encoding="utf-8")
    assert text == "<!-- a.b#1 -->\none\n\n<!-- a.b#2 -->\ntwo\nlines\n"
