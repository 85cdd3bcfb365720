"""Length buckets get equal shares of a model's heat, whatever tenant or prompt it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.building import BEFORE, DAY, fill, prompt
from warmup_lib.config import Config
from warmup_lib.plan.demand import read_demand
from warmup_lib.plan.lengths import SCHEMA, buckets


def table(*rows: tuple[str, int, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"model": m, "model_revision": None, "tokens": t, "requests": h, "heat_micro": h}
            for m, t, h in rows
        ],
        SCHEMA,
    )


def made(found: pa.Table) -> list[tuple[str, int, int]]:
    return [(row["model"], row["tokens"], row["heat_micro"]) for row in found.to_pylist()]


def test_bounds_are_quantiles_of_the_heat() -> None:
    lengths = table(*[("m", tokens, 1) for tokens in range(1, 101)])
    assert made(buckets(lengths, 4)) == [("m", t, 25) for t in (25, 50, 75, 100)]
    assert made(buckets(lengths, 1)) == [("m", 100, 100)]


def test_a_length_with_most_of_the_heat_leaves_fewer_buckets() -> None:
    lengths = table(("m", 10, 1), ("m", 500, 97), ("m", 900, 1), ("m", 4000, 1))
    assert made(buckets(lengths, 4)) == [("m", 500, 98), ("m", 4000, 2)]


def test_models_have_buckets_of_their_own() -> None:
    lengths = table(("a", 10, 5), ("a", 20, 5), ("b", 7, 1))
    assert made(buckets(lengths, 2)) == [("a", 10, 5), ("a", 20, 5), ("b", 7, 1)]


@given(
    heat=st.dictionaries(st.integers(1, 5000), st.integers(1, 10**9), min_size=1, max_size=60),
    count=st.integers(1, 8),
)
def test_all_heat_is_in_a_bucket_and_none_has_much_more_than_its_share(
    heat: dict[int, int], count: int
) -> None:
    lengths = sorted(heat.items())
    found = buckets(table(*[("m", tokens, hot) for tokens, hot in lengths]), count).to_pylist()
    total = sum(heat.values())
    assert 1 <= len(found) <= count
    assert sum(row["heat_micro"] for row in found) == total
    bounds = [row["tokens"] for row in found]
    assert bounds == sorted(bounds)
    assert bounds[-1] == max(heat)
    for low, row in zip([0, *bounds], found, strict=False):
        inside = [hot for tokens, hot in lengths if low < tokens <= row["tokens"]]
        assert row["heat_micro"] == sum(inside)
        # A bucket holds more than its share only by the length with which it reaches a bound.
        assert sum(inside[:-1]) <= total / count


def demand(root: Path, *rows: dict[str, Any], **scope: Any) -> list[dict[str, Any]]:
    config = Config.model_validate({"layers": {"weights": {"buckets": 2, "steps": 8}}})
    found = read_demand(fill(root, {DAY: list(rows)}), DAY, config, "enc", 4, **scope)
    assert found.lengths is not None
    listed: list[dict[str, Any]] = found.lengths.to_pylist()
    return listed


def test_the_heat_of_all_tenants_is_that_of_the_model(tmp_path: Path) -> None:
    rows = [
        prompt("a", 3, prompt_tokens=100),
        prompt("b", 2, prompt_tokens=900, tenant="globex", bypassed=2),
        prompt("c", 1, prompt_tokens=100, tenant="globex"),
        prompt("d", 9, prompt_tokens=40_000, failed=9),
        prompt("e", 5, prompt_tokens=70, model="large", model_revision="r1"),
    ]
    shown = ("model", "model_revision", "tokens", "requests", "heat_micro")
    assert [tuple(row[name] for name in shown) for row in demand(tmp_path, *rows)] == [
        ("large", "r1", 70, 5, 5_000_000),
        ("small", None, 100, 4, 4_000_000),
        ("small", None, 900, 2, 2_000_000),
    ]


@pytest.mark.parametrize(
    ("scope", "tokens"),
    [
        ({}, [10, 30]),
        ({"tenants": ["acme"]}, [10]),
        ({"models": ["large"]}, [30]),
        ({"models": []}, []),
    ],
)
def test_a_scope_is_kept_to(tmp_path: Path, scope: Any, tokens: list[int]) -> None:
    rows = [
        prompt("a", prompt_tokens=10),
        prompt("b", prompt_tokens=30, tenant="globex", model="large"),
    ]
    assert sorted(row["tokens"] for row in demand(tmp_path, *rows, **scope)) == tokens


def test_what_was_not_asked_since_a_day_is_left_out(tmp_path: Path) -> None:
    lake = fill(
        tmp_path,
        {BEFORE: [prompt("a", day=BEFORE, prompt_tokens=10)], DAY: [prompt("b", prompt_tokens=20)]},
    )
    found = read_demand(lake, DAY, Config(), "enc", 4, since=DAY)
    assert found.lengths is not None
    assert found.lengths["tokens"].to_pylist() == [20]


def test_bounds_are_those_of_numpy() -> None:
    tokens = np.unique(np.random.default_rng(3).integers(20, 4000, 300))
    found = buckets(table(*[("m", int(t), 1) for t in tokens]), 4).to_pylist()
    bounds = [row["tokens"] for row in found]
    expected = np.quantile(tokens, [0.25, 0.5, 0.75, 1], method="inverted_cdf")
    assert bounds == expected.tolist()
