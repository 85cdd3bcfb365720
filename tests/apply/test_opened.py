"""What apply and verify take from a plan before they begin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.apply.handmade import PLAN_DAY, fill, items, keys
from tests.apply.memory import plan_table
from warmup_lib.apply.opened import open_context, read_items
from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.layers.base import SHARED, Context


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path.as_uri())


def opened(lake: Lake, *layers: str) -> Context:
    chosen = read_items(lake, "p1", layers or None)
    return open_context(lake, "p1", Config(), keys(), chosen, [])


def test_adapters_are_known_by_their_planned_content_whatever_layers_are_applied(
    lake: Lake,
) -> None:
    plan = items("embeddings", [1, 2], 8)
    lora = replace(plan[0], layer="adapters", tenant=SHARED, adapter="cards", encoder=None)
    fill(lake, [*plan, replace(lora, item_id="a-1", key_digest="0123456789abcdef" * 4)], [1, 2], 8)
    for context in (opened(lake), opened(lake, "embeddings")):
        assert context.adapters == {"cards": "cards-0123456789ab"}
        assert context.adapter("cards") == "cards-0123456789ab"
        assert (context.adapter("loans"), context.adapter(None)) == ("loans", None)


def test_a_plan_without_adapters_keeps_the_names_in_the_log(lake: Lake) -> None:
    fill(lake, items("embeddings", [1], 8), [1], 8)
    assert opened(lake).adapters == {}
    assert opened(lake).complete


@pytest.mark.parametrize(
    "meta",
    [
        {"base": "p0"},
        {"since": "2026-03-10"},
        {"scope": {"tenants": ["acme"], "models": None}},
        {"scope": {"tenants": None, "models": []}},
    ],
)
def test_a_plan_of_a_part_is_not_complete(lake: Lake, meta: dict[str, Any]) -> None:
    whole = {"base": None, "since": None, "scope": {"tenants": None, "models": None}}
    plan = plan_table(items("embeddings", [1], 8))
    lake.replace("plan", {"plan_id": "p1"}, plan, {"day": PLAN_DAY, **whole})
    assert opened(lake).complete
    lake.replace("plan", {"plan_id": "p1"}, plan, {"day": PLAN_DAY, **whole, **meta})
    assert not opened(lake).complete
