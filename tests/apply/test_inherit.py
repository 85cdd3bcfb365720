"""An incremental plan leaves alone what its base warmed on a host's running process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.apply.memory import (
    MemoryHost,
    MemoryLayer,
    MemoryTarget,
    memory_context,
    plan_item,
    plan_table,
)
from warmup_lib.apply.stage import warm
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem
from warmup_lib.stage import StageReport

HEADS = [plan_item("prefixes", n) for n in range(1, 6)]
NEW = plan_item("prefixes", 6)
TEXTS = [plan_item("embeddings", n) for n in range(1, 4)]


class Site:
    """A lake, a Redis and a host, and plans that build on each other."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.store, self.host = MemoryTarget("redis"), MemoryHost("host")

    def apply(
        self,
        plan_id: str,
        items: Sequence[PlanItem],
        base: str | None = None,
        *,
        resume: bool = False,
    ) -> tuple[StageReport, list[str]]:
        """Write and warm a plan; return the report and the ids of what was warmed."""
        self.lake.replace("plan", {"plan_id": plan_id}, plan_table(items), {"base": base})
        layers = [MemoryLayer("embeddings"), MemoryLayer("prefixes", "host")]
        report = asyncio.run(
            warm(
                self.lake,
                items,
                layers,
                [self.store, self.host],
                memory_context(plan_id),
                resume=resume,
            )
        )
        return report, sorted(item for layer in layers for item in layer.warmed)

    def receipts(self, plan_id: str) -> dict[str, dict[str, Any]]:
        rows = self.lake.read("receipts", {"plan_id": plan_id}).to_pylist()
        return {row["item_id"]: row for row in rows}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Lake(str(tmp_path / "lake")))


def ids(*items: PlanItem) -> list[str]:
    return sorted(item.item_id for item in items)


def test_only_what_is_new_is_warmed_on_the_host(site: Site) -> None:
    site.apply("base", [*HEADS, *TEXTS])
    before = site.receipts("base")
    report, warmed = site.apply("more", [*HEADS, NEW, *TEXTS], base="base")

    assert warmed == ids(NEW, *TEXTS)  # what a Redis holds gets its lifetime anew
    counts = report.facts["completion"]["prefixes"]["host"]
    assert (counts["planned"], counts["done"], counts["already"]) == (6, 1, 5)
    assert counts["completion"] == 1.0
    kept = site.receipts("more")
    for item in HEADS:  # the receipt tells when it was done
        assert kept[item.item_id] == before[item.item_id]


def test_a_chain_of_plans_counts_whole(site: Site) -> None:
    site.apply("base", HEADS)
    site.apply("second", [NEW], base="base")
    assert site.apply("third", [*HEADS, NEW], base="second")[1] == []


def test_a_host_that_was_started_anew_gets_everything(site: Site) -> None:
    site.apply("base", HEADS)
    site.host = MemoryHost("host")
    assert site.apply("more", HEADS, base="base")[1] == ids(*HEADS)


def test_a_receipt_that_is_too_old_counts_for_nothing(site: Site) -> None:
    brief = [replace(item, ttl_s=0) for item in HEADS]
    site.apply("base", brief)
    assert site.apply("more", brief, base="base")[1] == ids(*brief)


def test_a_full_plan_warms_everything_again(site: Site) -> None:
    site.apply("base", HEADS)
    assert site.apply("full", HEADS)[1] == ids(*HEADS)


def test_what_failed_in_the_base_is_tried_again(site: Site) -> None:
    site.apply("base", HEADS[1:])
    site.lake.replace("plan", {"plan_id": "base"}, plan_table(HEADS), {"base": "more"})  # a circle
    assert site.apply("more", HEADS, base="base")[1] == ids(HEADS[0])


def test_a_resume_adds_to_what_the_plan_took(site: Site) -> None:
    def kept() -> float:
        manifest = site.lake.manifest("receipts", {"plan_id": "base"})
        assert manifest is not None
        seconds: float = manifest.meta["seconds"]
        return seconds

    site.apply("base", HEADS)
    first = kept()
    again, warmed = site.apply("base", HEADS, resume=True)
    assert warmed == []
    assert first < kept() <= first + again.facts["seconds"]  # the rest of an apply is its report
