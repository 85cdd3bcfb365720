"""Demand is the whole history's counts with the latest text and the latest answer there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plan.building import BEFORE, DAY, fill, head, heat, prompt
from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.layers.demand import Demand
from warmup_lib.plan.demand import read_demand


def demand(lake: Lake, day: str = DAY, **keep: Any) -> Demand:
    return read_demand(lake, day, Config(), "enc", 4, **keep)


def by_digest(found: Demand) -> dict[str, dict[str, Any]]:
    return {row["response_digest"]: row for row in found.prompts.to_pylist()}


def test_counts_are_summed_and_text_and_answer_are_the_latest(tmp_path: Path) -> None:
    old = prompt("a", 3, day=BEFORE, text="Old words", response="old answer", unwarmable="redacted")
    new = prompt("a", 2, text="New words", response=None, near_of="t-b")
    lake = fill(tmp_path, {BEFORE: [old, prompt("b", 4, day=BEFORE)], DAY: [new]})

    rows = by_digest(demand(lake))

    assert rows["a"]["requests"] == 5
    assert rows["a"]["text"] == "New words"
    assert rows["a"]["response"] == "old answer"
    assert rows["a"]["unwarmable"] is None
    assert rows["a"]["near_of"] == "t-b"
    assert rows["a"]["first_ts"] == old["first_ts"]
    assert rows["a"]["last_ts"] == new["last_ts"]
    assert rows["a"]["heat_micro"] == 5_000_000
    assert rows["b"]["heat_micro"] == 4_000_000


def test_what_goes_round_the_caches_is_no_heat(tmp_path: Path) -> None:
    lake = fill(
        tmp_path,
        {DAY: [prompt("a", 4, bypassed=1), prompt("b", 3, bypassed=3), prompt("c", 3, bypassed=1)]},
    )
    rows = by_digest(demand(lake))
    assert [rows[d]["heat_micro"] for d in "abc"] == [3_000_000, 0, 2_000_000]


def test_heads_have_their_heat_whatever_was_bypassed(tmp_path: Path) -> None:
    lake = fill(
        tmp_path,
        {BEFORE: [prompt("a", day=BEFORE)], DAY: [prompt("a", bypassed=1)]},
        {BEFORE: [head("h", 5, day=BEFORE)], DAY: [head("h", 2, mean_ttft_ms=700.0)]},
    )
    (row,) = demand(lake).heads.to_pylist()
    assert (row["heat_micro"], row["requests"], row["mean_ttft_ms"]) == (7_000_000, 7, 700.0)


def test_prompt_that_the_forecast_does_not_know_has_no_heat(tmp_path: Path) -> None:
    lake = fill(tmp_path, {DAY: [prompt("a", 4), prompt("b", 4)]})
    heat(lake, DAY, {("prompt", "acme", "a"): 1.5, ("head", "acme", "b"): 9})
    rows = by_digest(demand(lake))
    assert [rows[d]["heat_micro"] for d in "ab"] == [1_500_000, 0]


def test_tenants_with_one_digest_stay_apart(tmp_path: Path) -> None:
    lake = fill(tmp_path, {DAY: [prompt("a", 4), prompt("a", 1, tenant="other")]})
    rows = demand(lake).prompts.to_pylist()
    assert [(r["tenant"], r["requests"], r["heat_micro"]) for r in rows] == [
        ("acme", 4, 4_000_000),
        ("other", 1, 1_000_000),
    ]


def test_filters_keep_days_tenants_and_models(tmp_path: Path) -> None:
    lake = fill(
        tmp_path,
        {
            BEFORE: [prompt("old", day=BEFORE), prompt("both", day=BEFORE)],
            DAY: [prompt("both"), prompt("t", tenant="other"), prompt("m", model="large")],
        },
    )
    assert sorted(by_digest(demand(lake))) == ["both", "m", "old", "t"]
    assert sorted(by_digest(demand(lake, since=DAY))) == ["both", "m", "t"]
    assert by_digest(demand(lake, since=DAY))["both"]["requests"] == 2
    assert sorted(by_digest(demand(lake, tenants=["other"]))) == ["t"]
    assert sorted(by_digest(demand(lake, models=["large", "none"]))) == ["m"]


def test_lookback_bounds_the_history(tmp_path: Path) -> None:
    lake = fill(tmp_path, {BEFORE: [prompt("old", day=BEFORE)], DAY: [prompt("new")]})
    config = Config.model_validate({"forecast": {"lookback": "1d"}})
    found = read_demand(lake, DAY, config, "enc", 4)
    assert sorted(by_digest(found)) == ["new"]


def test_missing_stages_are_named(tmp_path: Path) -> None:
    lake = fill(tmp_path, {DAY: [prompt("a")]})
    with pytest.raises(InputDataError, match="run `distil`"):
        demand(lake, "2026-03-15")
    lake.drop("heat", {"day": DAY})
    with pytest.raises(InputDataError, match="run `forecast`"):
        demand(lake)


def test_rows_are_in_one_order_whatever_the_parts(tmp_path: Path) -> None:
    lake = fill(tmp_path, {DAY: [prompt(f"{n:03}", n) for n in range(50, 0, -1)]})
    once, twice = demand(lake), demand(lake)
    assert once.prompts.equals(twice.prompts)
    assert once.prompts["response_digest"].to_pylist() == [f"{n:03}" for n in range(1, 51)]
