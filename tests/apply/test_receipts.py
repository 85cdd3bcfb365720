"""Receipts reach the lake before anything goes on, few parts at a time, and none is lost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from warmup_lib.apply import receipts as module
from warmup_lib.apply.receipts import Journal, Receipt, latest
from warmup_lib.lake import Lake
from warmup_lib.layers.spent import record, recorded

T0 = datetime(2026, 3, 14, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(f"file://{tmp_path}")


def receipt(item: int, at: int = 0, *, target: str = "a", layer: str = "embeddings",
            status: str = "warmed") -> Receipt:  # fmt: skip
    when = T0 + timedelta(seconds=at)
    return Receipt(
        f"i{item}",
        layer,
        "acme",
        target,
        "e1",
        status,
        1,
        10,
        0,
        1.0,
        60,
        None,
        1,
        None,
        None,
        when,  # type: ignore[arg-type]
    )


def test_the_last_receipt_of_an_item_and_target_counts(lake: Lake) -> None:
    journal = Journal(lake, "p1")

    async def write() -> None:
        await journal.record([receipt(1, 5), receipt(2, 5), receipt(1, 5, target="b")])
        await journal.record([receipt(1, 9, status="failed"), receipt(2, 1, status="failed")])
        await journal.compact()

    asyncio.run(write())
    rows = lake.read("receipts", {"plan_id": "p1"}).to_pylist()
    assert {(r["item_id"], r["target"]): r["status"] for r in rows} == {
        ("i1", "a"): "failed",
        ("i2", "a"): "warmed",
        ("i1", "b"): "warmed",
    }
    assert latest(lake.read("receipts", {"plan_id": "p1"})).num_rows == 3


def test_a_recorded_batch_is_in_the_lake_when_record_returns(lake: Lake) -> None:
    async def one(journal: Journal, number: int) -> bool:
        await journal.record([receipt(number)])
        seen = lake.read("receipts", {"plan_id": "p1"})["item_id"].to_pylist()
        return f"i{number}" in seen

    async def many() -> list[bool]:
        journal = Journal(lake, "p1")
        return await asyncio.gather(*[one(journal, n) for n in range(40)])

    assert all(asyncio.run(many()))
    manifest = lake.manifest("receipts", {"plan_id": "p1"})
    assert manifest is not None
    assert manifest.rows == 40
    assert len(manifest.parts) < 10  # batches that wait for one append share the next


def test_parts_are_merged_before_they_become_many(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_PARTS", 5)

    async def write() -> list[int]:
        journal = Journal(lake, "p1")
        counts = []
        for number in range(23):
            await journal.record([receipt(number)])
            manifest = lake.manifest("receipts", {"plan_id": "p1"})
            assert manifest is not None
            counts.append(len(manifest.parts))
        return counts

    assert max(asyncio.run(write())) <= 5
    assert lake.read("receipts", {"plan_id": "p1"}).num_rows == 23


def test_two_processes_of_one_plan_lose_nothing(lake: Lake) -> None:
    async def write() -> None:
        journals = [Journal(lake, "p1"), Journal(lake, "p1")]
        await asyncio.gather(
            *[journals[n % 2].record([receipt(n, target="ab"[n % 2])]) for n in range(60)],
            journals[0].compact(),
        )
        await journals[1].compact()

    asyncio.run(write())
    assert lake.read("receipts", {"plan_id": "p1"}).num_rows == 60


def test_forgetting_is_limited_to_a_target_and_its_layers(lake: Lake) -> None:
    async def write() -> None:
        journal = Journal(lake, "p1")
        await journal.record([receipt(1), receipt(2, layer="responses"), receipt(1, target="b")])
        await journal.forget("a", ["embeddings"])

    asyncio.run(write())
    rows = lake.read("receipts", {"plan_id": "p1"}).to_pylist()
    assert sorted((r["item_id"], r["target"]) for r in rows) == [("i1", "b"), ("i2", "a")]


def test_a_failed_append_reaches_every_batch_that_waited_for_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    async def write() -> list[object]:
        journal = Journal(lake, "p1")
        monkeypatch.setattr(lake, "append", full)
        return await asyncio.gather(
            *[journal.record([receipt(n)]) for n in range(3)], return_exceptions=True
        )

    assert [type(r) for r in asyncio.run(write())] == [OSError] * 3


def test_what_warming_took_outlasts_the_merging_of_receipts(lake: Lake) -> None:
    journal = Journal(lake, "p1")
    record(lake, "p1", {"responses": {"r": {"items": 3, "seconds": 1.0, "bytes": 5, "tokens": 0}}})
    asyncio.run(journal.compact())
    assert recorded(lake, "p1")["responses"]["r"]["items"] == 3
