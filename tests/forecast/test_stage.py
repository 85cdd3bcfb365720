"""heat out of prompts and heads."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.forecast.stage import run
from warmup_lib.lake import Lake
from warmup_lib.tables import HEADS, MICRO, PROMPTS

LAST = date(2026, 3, 14)
DAY = LAST.isoformat()
ONE_DAY = Config.model_validate({"forecast": {"half_life": "1d", "lookback": "7d"}})


def day_before(age: int) -> str:
    return (LAST - timedelta(days=age)).isoformat()


def store(lake: Lake, day: str, counts: dict[str, int], *, table: str = "prompts") -> None:
    declared = {"prompts": PROMPTS, "heads": HEADS}[table]
    at = datetime.fromisoformat(day).replace(tzinfo=UTC)
    rows = []
    for name, requests in counts.items():
        tenant, digest = name.split("/")
        row: dict[str, Any] = dict.fromkeys(declared.schema.names)
        row |= {"tenant": tenant, "model": "m", "requests": requests, "last_ts": at}
        row |= {"response_digest" if table == "prompts" else "head_digest": digest}
        rows.append(row)
    lake.replace(table, {"day": day}, pa.Table.from_pylist(rows, schema=declared.schema))


def heat(lake: Lake) -> dict[tuple[str, str, str], tuple[int, int, str]]:
    rows = lake.read("heat", {"day": DAY}).to_pylist()
    return {
        (r["level"], r["tenant"], r["digest"]): (r["heat_micro"], r["seen"], r["last_day"])
        for r in rows
    }


def content(root: Path) -> dict[str, bytes]:
    folder = root / "heat" / f"day={DAY}"
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_heat_is_the_decayed_count_of_both_levels(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    store(lake, day_before(1), {"acme/a": 3, "acme/b": 1, "zeta/a": 10})
    store(lake, DAY, {"acme/a": 6})
    store(lake, day_before(1), {"acme/h": 4}, table="heads")
    store(lake, DAY, {"acme/h": 2}, table="heads")
    report = run(lake, DAY, ONE_DAY)
    old, new = 333_333, 666_667
    assert heat(lake) == {
        ("prompt", "acme", "a"): (3 * old + 6 * new, 9, DAY),
        ("prompt", "acme", "b"): (old, 1, day_before(1)),
        ("prompt", "zeta", "a"): (10 * old, 10, day_before(1)),
        ("head", "acme", "h"): (4 * old + 2 * new, 6, DAY),
    }
    assert (report.rows_in, report.rows_out) == (6, 4)
    assert report.facts["prompts"] == {"count": 3, "heat_micro": 14 * old + 6 * new}
    assert report.facts["heads"] == {"count": 1, "heat_micro": 4 * old + 2 * new}
    [short] = report.notes
    assert short.startswith("the history is 2 days: below 7 expect fewer hits")
    assert set(report.facts["fitted"]) == {"prompt", "head", "text"}


def test_a_week_is_no_short_history(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    for age in range(7):
        store(lake, day_before(age), {"acme/a": 3})
    assert run(lake, DAY, ONE_DAY).notes == ()


def test_days_outside_the_window_do_not_count_and_holes_are_named(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    store(lake, day_before(7), {"acme/old": 100})
    store(lake, day_before(3), {"acme/a": 8})
    store(lake, DAY, {"acme/a": 1})
    store(lake, (LAST + timedelta(days=1)).isoformat(), {"acme/future": 100})
    report = run(lake, DAY, ONE_DAY)
    # Worth 1/8 and 1, of 9/8 together.
    assert heat(lake) == {("prompt", "acme", "a"): (8 * 111_111 + 888_889, 9, DAY)}
    assert report.facts["days"] == [day_before(3), DAY]
    assert report.facts["missing_days"] == [day_before(2), day_before(1)]
    assert f"{day_before(2)}, {day_before(1)}" in report.notes[0]


@settings(max_examples=15, deadline=None)
@given(
    rate=st.integers(0, 10_000),
    ages=st.sets(st.integers(1, 6)),
)
def test_a_steady_demand_is_expected_to_go_on(
    rate: int, ages: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    for age in {0, *ages}:
        store(lake, day_before(age), {"acme/a": rate})
    run(lake, DAY, ONE_DAY)
    assert heat(lake)["prompt", "acme", "a"][0] == rate * MICRO


def test_the_same_history_gives_the_same_bytes(tmp_path: Path) -> None:
    counts = {f"t{i % 7}/d{i:04}": i * i % 97 for i in range(3000)}
    backwards = dict(reversed(counts.items()))
    for name, order in (("one", counts), ("two", backwards)):
        lake = Lake(str(tmp_path / name))
        for age in (5, 2, 0):
            store(lake, day_before(age), order)
        run(lake, DAY, ONE_DAY)
    first = content(tmp_path / "one")
    assert content(tmp_path / "two") == first
    run(Lake(str(tmp_path / "one")), DAY, ONE_DAY)
    assert content(tmp_path / "one") == first


def test_a_day_that_was_not_distilled_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="run `distil`"):
        run(Lake(str(tmp_path)), DAY, ONE_DAY)
