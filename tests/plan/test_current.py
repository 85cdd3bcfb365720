"""The current plan is the newest that was made for as much, and its items end when they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plan.building import rows_of
from warmup_lib.lake import Lake
from warmup_lib.plan.current import current_plan, next_sequence, standing

ALL = {"tenants": None, "models": None}


def write(
    lake: Lake, plan_id: str, day: str, items: dict[str, int] | None = None, **meta: Any
) -> None:
    rows = [
        {"item_id": item, "ttl_s": ttl, "layer": "responses"} for item, ttl in (items or {}).items()
    ]
    facts = {"day": day, "sequence": 1, "layers": ["responses"], "scope": ALL, "base": None}
    lake.replace("plan", {"plan_id": plan_id}, rows_of("plan", rows), {**facts, **meta})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path))


def test_newest_by_day_then_by_order_of_making(lake: Lake) -> None:
    assert current_plan(lake) is None
    write(lake, "z", "2026-03-13")
    write(lake, "b", "2026-03-14", sequence=1)
    write(lake, "a", "2026-03-14", sequence=2)
    assert current_plan(lake) == "a"
    assert current_plan(lake, "2026-03-15") == "a"
    assert current_plan(lake, "2026-03-14") == "z"
    assert current_plan(lake, "2026-03-13") is None


def test_only_plans_made_for_as_much_count(lake: Lake) -> None:
    write(lake, "wide", "2026-03-13", layers=["responses", "prefixes"])
    write(lake, "narrow", "2026-03-14", layers=["prefixes"])
    write(
        lake,
        "tenant",
        "2026-03-15",
        layers=["responses", "prefixes"],
        scope={**ALL, "tenants": ["a"]},
    )
    assert current_plan(lake, layers=["prefixes"], scope=ALL) == "narrow"
    assert current_plan(lake, layers=["responses"], scope=ALL) == "wide"
    assert current_plan(lake, layers=["responses"]) == "tenant"
    assert current_plan(lake, layers=["weights"]) is None


def test_a_plan_keeps_its_place_when_it_is_made_again(lake: Lake) -> None:
    assert next_sequence(lake, "a", "2026-03-14") == 1
    write(lake, "a", "2026-03-14", sequence=1)
    assert next_sequence(lake, "b", "2026-03-14") == 2
    write(lake, "b", "2026-03-14", sequence=2)
    assert next_sequence(lake, "a", "2026-03-14") == 1
    assert next_sequence(lake, "c", "2026-03-15") == 1


def test_items_stand_until_their_lifetime_ends(lake: Lake) -> None:
    day = 86_400
    write(lake, "p", "2026-03-14", {"short": 1800, "day": day, "two": 2 * day, "three": 3 * day})

    def ids(at: str, **more: Any) -> list[str]:
        return standing(lake, "p", at, renewed=False, **more)["item_id"].to_pylist()

    assert ids("2026-03-14") == ["day", "three", "two"]
    assert ids("2026-03-15") == ["three", "two"]
    assert ids("2026-03-16") == ["three"]
    assert ids("2026-03-17") == []
    assert standing(lake, "p", "2026-03-17", renewed=True).num_rows == 4


def test_a_plan_stands_on_those_before_it(lake: Lake) -> None:
    day = 86_400
    write(lake, "one", "2026-03-12", {"x": 9 * day, "y": day})
    write(lake, "two", "2026-03-13", {"x": 5 * day, "z": 2 * day}, base="one")
    write(lake, "three", "2026-03-14", {"w": 1800}, base="two")
    found = standing(lake, "three", "2026-03-14", renewed=True)
    held = dict(zip(found["item_id"].to_pylist(), found["ttl_s"].to_pylist(), strict=True))
    assert held == {"w": 1800, "x": 5 * day, "z": 2 * day}  # y has ended; of x the newer counts
    assert standing(lake, "three", "2026-03-15", renewed=False)["item_id"].to_pylist() == ["x"]
    assert standing(lake, None, "2026-03-14", renewed=True).num_rows == 0


def test_a_purged_base_ends_the_chain(lake: Lake) -> None:
    write(lake, "two", "2026-03-13", {"z": 10**6}, base="gone")
    assert standing(lake, "two", "2026-03-14", renewed=False)["item_id"].to_pylist() == ["z"]
