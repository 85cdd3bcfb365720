"""Two plans are told apart item by item, without a text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plan.building import rows_of
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.plan.diff import diff


def row(item: str, rank: int, layer: str = "responses") -> dict[str, object]:
    return {
        "item_id": item,
        "rank": rank,
        "layer": layer,
        "tenant": "acme",
        "text": "how do I pay",
        "response": "like this",
        "expected_micro": 1_500_000 * rank,
        "reason": f"reason {rank}",
    }


def test_added_kept_and_dropped_by_layer(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    old = [row("a", 1), row("b", 2), row("h", 1, "prefixes")]
    new = [row("c", 1), row("b", 3)]
    lake.replace("plan", {"plan_id": "p1"}, rows_of("plan", old))
    lake.replace("plan", {"plan_id": "p2"}, rows_of("plan", new))

    found = diff(lake, "p1", "p2")

    assert (found["a"], found["b"]) == ("p1", "p2")
    responses = found["layers"]["responses"]
    assert [responses[side] for side in ("added", "kept", "dropped")] == [1, 1, 1]
    assert responses["items"]["kept"] == [
        {"item_id": "b", "tenant": "acme", "rank": 3, "reason": "reason 3", "expected_hits": 4.5}
    ]
    assert [r["item_id"] for r in responses["items"]["added"]] == ["c"]
    assert [r["item_id"] for r in responses["items"]["dropped"]] == ["a"]
    assert found["layers"]["prefixes"]["dropped"] == 1
    assert found["layers"]["prefixes"]["items"]["added"] == []
    written = json.dumps(found)
    assert "how do I pay" not in written
    assert "like this" not in written


def test_what_a_plan_adds_to_stays(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.replace("plan", {"plan_id": "p1"}, rows_of("plan", [row("a", 1), row("b", 2)]))
    lake.replace("plan", {"plan_id": "p2"}, rows_of("plan", [row("c", 1)]), {"base": "p1"})
    sides = diff(lake, "p1", "p2")["layers"]["responses"]
    assert (sides["added"], sides["kept"], sides["dropped"]) == (1, 2, 0)
    assert {one["item_id"] for one in sides["items"]["kept"]} == {"a", "b"}


def test_a_plan_does_not_differ_from_itself(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.replace("plan", {"plan_id": "p1"}, rows_of("plan", [row("a", 1)]))
    sides = diff(lake, "p1", "p1")["layers"]["responses"]
    assert (sides["added"], sides["kept"], sides["dropped"]) == (0, 1, 0)


def test_unknown_plan_is_named(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.replace("plan", {"plan_id": "p1"}, rows_of("plan", []))
    with pytest.raises(InputDataError, match="no such plan: p2"):
        diff(lake, "p1", "p2")
