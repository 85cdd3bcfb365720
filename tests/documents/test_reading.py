"""Chunks come out of pages and lines as they were cut, and what is bad has its reason and place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.documents.reading import Bad, Chunk, Reason, cut, read_documents
from warmup_lib.errors import ConfigError

ids = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
bodies = st.text("abc <!-\n#", max_size=30).map(str.strip)


@given(st.lists(st.tuples(ids, bodies), min_size=1, max_size=6))
def test_a_page_gives_back_what_was_written(chunks: list[tuple[str, str]]) -> None:
    page = "# Title\n\n" + "\n".join(f"<!-- {i} -->\n{body}\n" for i, body in chunks)
    expected = [
        Chunk(i, "guide", body) if body else Bad(Reason.EMPTY_CHUNK, "guide") for i, body in chunks
    ]
    assert list(cut("guide", page)) == expected


def test_only_a_line_of_its_own_begins_a_chunk() -> None:
    page = "<!-- a#1 -->\nuse `<!-- b -->` here\n<!-- two words -->\n<!-- a#2 -->  \nend"
    assert list(cut("a", page)) == [
        Chunk("a#1", "a", "use `<!-- b -->` here\n<!-- two words -->"),
        Chunk("a#2", "a", "end"),
    ]


def test_a_folder_is_read_page_by_page_and_a_bad_page_alone_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.md").write_text("<!-- b#1 -->\nsecond", encoding="utf-8")
    (tmp_path / "a.md").write_text("<!-- a#1 -->\r\nerste Änderung\r\n", encoding="utf-8")
    (tmp_path / "c.md").write_bytes(b"<!-- c#1 -->\n\xff\xfe")
    (tmp_path / "d.md").write_text("no chunk in it", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("<!-- e#1 -->\nnot a page", encoding="utf-8")
    assert list(read_documents(str(tmp_path))) == [
        Chunk("a#1", "a", "erste Änderung"),
        Bad(Reason.NOT_UTF8, "c"),
        Bad(Reason.NO_CHUNK, "d"),
        Chunk("b#1", "deep/b", "second"),
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_read_and_a_bad_line_is_named(tmp_path: Path, packed: bool) -> None:
    good = {"chunk_id": "a", "document": "d", "text": " text "}
    lines = [
        json.dumps(good).encode(),
        b"",
        b"{broken",
        b'{"chunk_id": "b", "document": "d"}',
        b'{"chunk_id": 7, "document": "d", "text": "x"}',
        b'{"chunk_id": "c", "document": "d", "text": "  "}',
        b'["a list"]',
        b'{"chunk_id": "e", "document": "d", "text": "\xff"}',
        b'{"chunk_id": "f", "document": "d", "text": "\\ud83d"}',
        b"[" * 100_000,
    ]
    body = b"\n".join(lines)
    path = tmp_path / ("chunks.jsonl.gz" if packed else "chunks.jsonl")
    path.write_bytes(gzip.compress(body) if packed else body)
    assert list(read_documents(str(path))) == [
        Chunk("a", "d", "text"),
        Bad(Reason.NOT_JSON, "line 3"),
        Bad(Reason.MISSING_FIELD, "line 4"),
        Bad(Reason.MISSING_FIELD, "line 5"),
        Bad(Reason.MISSING_FIELD, "line 6"),
        Bad(Reason.MISSING_FIELD, "line 7"),
        Bad(Reason.NOT_UTF8, "line 8"),
        Bad(Reason.NOT_UTF8, "line 9"),
        Bad(Reason.NOT_JSON, "line 10"),
    ]


def test_a_file_that_ends_in_the_middle_keeps_what_was_read(tmp_path: Path) -> None:
    lines = [json.dumps({"chunk_id": f"{n}", "document": "d", "text": f"{n}"}) for n in range(5000)]
    whole = gzip.compress("\n".join(lines).encode())
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    *read, last = read_documents(str(tmp_path / "cut.jsonl.gz"))
    assert len(read) > 100
    assert all(isinstance(one, Chunk) for one in read)
    assert last == Bad(Reason.UNREADABLE, f"after line {len(read)}")


@pytest.mark.parametrize("path", ["{}/absent", "nosuch://bucket/docs"])
def test_what_is_not_there_is_a_mistake_in_the_settings(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="documents at"):
        list(read_documents(path.format(tmp_path)))
