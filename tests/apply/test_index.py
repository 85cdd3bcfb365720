"""Where a Redis can't search, the plan's chunks and lists get FAISS files, and a note says so."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.apply.memory import ENCODER, MemoryTarget, memory_context, plan_item
from warmup_lib.apply.index import index_files, index_notes
from warmup_lib.errors import StoreUnavailable
from warmup_lib.lake import Lake
from warmup_lib.layers.index_file import nearest_in_file
from warmup_lib.targets.store import RedisStore

CHUNKS = [replace(plan_item("retrieval", n), chunk_ids=[f"page#{n}"]) for n in (1, 2)]
LISTS = [replace(plan_item("retrieval", n), tier="L3", chunk_ids=["page#1"]) for n in (3,)]


class Plain(RedisStore):
    """Says whether it can search without a server behind it."""

    search: bool | None = False

    async def has_search(self) -> bool:
        if self.search is None:
            raise StoreUnavailable(self.name, "no connection")
        return self.search


def store(search: bool | None) -> Plain:
    made = Plain("cache", "redis://127.0.0.1:1/0")
    made.search = search
    return made


def test_files_are_written_once_and_find_the_plans_chunks(tmp_path: Path) -> None:
    lake, context = Lake(str(tmp_path)), memory_context()
    answers = [plan_item("responses", 9)]
    targets = [store(None), MemoryTarget("memory"), store(True), store(False), store(False)]
    items = [*CHUNKS, *LISTS, *answers]
    folder = asyncio.run(index_files(lake, items, targets, context))
    assert folder == f"{lake.root}/_retrieval/p1"
    scope = context.keys.scope("acme")
    assert sorted(file.name for file in Path(folder).iterdir()) == [
        f"{scope}.{kind}.{end}" for kind in ("chunks", "lists") for end in ("faiss", "json")
    ]
    vector = context.vectors.get(["any"])["any"]
    assert {name for name, _ in nearest_in_file(lake, folder, scope, "chunks", vector, 5)} == {
        *("page#1", "page#2")
    }
    assert index_notes(folder)[0].endswith(folder)
    assert ENCODER not in folder


@pytest.mark.parametrize("search", [True, None])
def test_no_files_where_each_redis_that_answers_can_search(
    tmp_path: Path, search: bool | None
) -> None:
    lake = Lake(str(tmp_path))
    assert asyncio.run(index_files(lake, CHUNKS, [store(search)], memory_context())) is None
    assert asyncio.run(index_files(lake, [], [store(False)], memory_context())) is None
    assert index_notes(None) == []
    assert list(tmp_path.iterdir()) == []
