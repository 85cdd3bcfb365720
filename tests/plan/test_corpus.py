"""A plan holds the documents in force: when a page changes, so does the plan, and its id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.plan.building import DAY, embed, fill, prompt, rows_of
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.plan.stage import run
from warmup_lib.tables import MICRO

NEXT = "2026-03-15"
DEGREES = {"t-a": 0.0, "t-b": 90.0}
CHUNKS = {"page#1": 2.0, "page#2": 40.0, "other#1": 85.0, "other#2": 179.0}


def config(**retrieval: Any) -> Config:
    names = ("weights", "adapters", "responses", "prefixes")
    off = {name: {"enabled": False} for name in names}
    documents = [{"tenant": "acme", "path": "docs"}]
    layers = {**off, "retrieval": {"documents": documents, "top": 2, **retrieval}}
    return Config.model_validate({"layers": layers})


def chunks(lake: Lake, day: str, degrees: dict[str, float]) -> None:
    """Write the chunks of a day, each with a vector in its direction."""
    rows = [
        {"tenant": "acme", "chunk_id": name, "chunk_digest": f"d-{name}", "text": name}
        | {"document": name.split("#")[0], "text_digest": f"t-{name}-{angle}"}
        for name, angle in degrees.items()
    ]
    lake.replace("chunks", {"day": day}, rows_of("chunks", rows))
    vectors = {f"t-{name}-{angle}": angle for name, angle in degrees.items()}
    embed(lake, {**DEGREES, **vectors}, day=day)


def clusters(lake: Lake, day: str) -> None:
    """Write two clusters of one text each."""
    shared = {"tenant": "acme", "heat_micro": 3 * MICRO, "encoder": "enc", "similarity": 1.0}
    rows = [
        {"cluster_id": f"acme/{n}", "medoid": f"t-{name}", "text_digest": f"t-{name}", **shared}
        for n, name in enumerate("ab")
    ]
    for table in ("clusters", "members"):
        lake.replace(table, {"day": day}, rows_of(table, rows))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = fill(
        tmp_path / "lake",
        {DAY: [prompt("a", 3, chunk_ids=["other#2"]), prompt("b", 3)]},
    )
    chunks(made, DAY, CHUNKS)
    clusters(made, DAY)
    return made


def items(lake: Lake, plan_id: str, tier: str | None) -> dict[str, Any]:
    rows = lake.read("plan", {"plan_id": plan_id})
    rows = rows.filter(pc.equal(rows["layer"], "retrieval"))
    return {row["key_digest"]: row for row in rows.to_pylist() if row["tier"] == tier}


def test_lists_and_the_chunks_they_hold_are_planned(lake: Lake) -> None:
    report = run(lake, DAY, config())
    lists = items(lake, report.facts["plan_id"], "L3")
    assert {key: row["chunk_ids"] for key, row in lists.items()} == {
        "t-a": ["page#1", "page#2"],
        "t-b": ["other#1", "page#2"],
    }
    of_chunks = items(lake, report.facts["plan_id"], None)
    assert {key: row["heat_micro"] // MICRO for key, row in of_chunks.items()} == {
        "d-page#1": 3,
        "d-page#2": 6,
        "d-other#1": 3,
        "d-other#2": 3,  # no list holds it, but requests retrieved it
    }
    assert report.facts["items"] == {"embeddings": 2, "retrieval": 6}
    assert report.facts["tiers"] == {"L3": {"layer": "retrieval", "items": 2, "expected_hits": 6.0}}
    ranks = [row["rank"] for row in [*of_chunks.values(), *lists.values()]]
    assert sorted(ranks) == [1, 2, 3, 4, 5, 6]
    assert of_chunks["d-page#2"]["reason"] == "6.0 expected requests a day retrieve it"
    assert lists["t-a"]["reason"] == "3.0 expected requests a day are of its cluster"


def test_each_tier_has_a_limit_of_its_own_and_the_rest_is_left_out(lake: Lake) -> None:
    report = run(lake, DAY, config(items=1, lists=1))
    assert list(items(lake, report.facts["plan_id"], None)) == ["d-page#2"]
    assert list(items(lake, report.facts["plan_id"], "L3")) == ["t-a"]
    assert report.facts["left_out"]["retrieval"] == {"below_budget": 4}


def test_a_page_that_changed_makes_a_new_plan_and_changes_its_own_items_alone(lake: Lake) -> None:
    first = run(lake, DAY, config())
    for table, rows in (("prompts", [prompt("a", 3, day=NEXT), prompt("b", 3, day=NEXT)]),):
        lake.replace(table, {"day": NEXT}, rows_of(table, rows))
    lake.replace("heads", {"day": NEXT}, rows_of("heads", []))
    lake.replace("heat", {"day": NEXT}, lake.read("heat", {"day": DAY}))
    chunks(lake, NEXT, CHUNKS)
    clusters(lake, NEXT)
    waits = run(lake, NEXT, config())
    assert (waits.facts["decision"], waits.facts["plan_id"]) == ("wait", first.facts["plan_id"])
    chunks(lake, NEXT, {**CHUNKS, "page#1": 3.0})
    report = run(lake, NEXT, config())
    assert report.facts["decision"] == "planned"
    before, after = (
        {
            **items(lake, facts["plan_id"], None),
            **items(lake, facts["plan_id"], "L3"),
        }
        for facts in (first.facts, report.facts)
    )
    changed = {key for key in after if after[key]["item_id"] != before[key]["item_id"]}
    assert changed == {"d-page#1", "t-a"}
    sources = {key for key in after if after[key]["source_digest"] != before[key]["source_digest"]}
    assert sources == changed


def test_the_plans_id_follows_the_documents_and_the_clusters(lake: Lake) -> None:
    first = run(lake, DAY, config()).facts["plan_id"]
    assert run(lake, DAY, config()).facts["plan_id"] == first
    chunks(lake, DAY, {**CHUNKS, "page#1": 3.0})
    second = run(lake, DAY, config()).facts["plan_id"]
    rows = lake.read("members", {"day": DAY}).to_pylist()
    rows[0]["heat_micro"] += 1
    lake.replace("members", {"day": DAY}, rows_of("members", rows))
    third = run(lake, DAY, config()).facts["plan_id"]
    assert len({first, second, third}) == 3


def test_documents_without_clusters_are_refused(lake: Lake) -> None:
    lake.drop("clusters", {"day": DAY})
    with pytest.raises(InputDataError, match="run `cluster` for it first"):
        run(lake, DAY, config())


def test_another_tenants_documents_are_not_planned_for(lake: Lake) -> None:
    report = run(lake, DAY, config(), tenants=["other"])
    assert report.facts["items"] == {"embeddings": 0, "retrieval": 0}


def test_without_documents_retrieval_is_off(lake: Lake) -> None:
    lake.drop("chunks", {"day": DAY})
    off = Config.model_validate(
        {"layers": {name: {"enabled": False} for name in ("weights", "adapters", "prefixes")}}
    )
    report = run(lake, DAY, off)
    assert set(report.facts["items"]) == {"embeddings", "responses"}
