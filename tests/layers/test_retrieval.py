"""Chunks and lists are warmed by content: what changed is written again, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers.building import (
    ENCODER,
    demand,
    prompt,
)
from tests.layers.pages import LAYER, World, chunks, config, lists
from warmup_lib.config import Config
from warmup_lib.layers.corpus import nearest_rows
from warmup_lib.tables import LEFT_OUT, MICRO, PLAN


def test_a_list_holds_the_chunks_nearest_to_its_clusters_medoid(world: World) -> None:
    made = world.items()
    assert len(lists(made)) == 10
    assert len(chunks(made)) == 24
    for item in lists(made):
        assert list(item.chunk_ids or ()) == world.fresh(item)
        assert (item.encoder, item.ttl_s) == (ENCODER, 48 * 3600)
    heats = [item.heat_micro // MICRO for item in lists(made) if item.tenant == "acme"]
    assert heats == [18, 16, 14, 12, 10]  # two texts a cluster


def test_a_chunks_heat_is_that_of_its_requests_or_of_the_lists_that_hold_it(world: World) -> None:
    hot = "page2#1"
    row = prompt(world.keys, "acme", "q", 500, chunk_ids=[hot, "unknown"], unwarmable="redacted")
    world.prompts = [row]
    made = world.items()
    heat = {(i.tenant, (i.chunk_ids or [""])[0]): i.heat_micro for i in chunks(made)}
    assert heat["acme", hot] == 500 * MICRO
    for (tenant, chunk_id), micro in heat.items():
        used = [i for i in lists(made) if i.tenant == tenant and chunk_id in (i.chunk_ids or ())]
        if (tenant, chunk_id) != ("acme", hot):
            assert micro == sum(item.heat_micro for item in used)


def test_the_same_text_twice_is_two_chunks_in_the_order_of_their_ids(world: World) -> None:
    for n in range(3):
        world.write("acme", f"page0#{n}", "one and the same")
    of = [i for i in lists(world.items()) if i.tenant == "acme"]
    same = [[c for c in i.chunk_ids or () if c.startswith("page0#")] for i in of]
    assert all(found == sorted(found) for found in same)
    assert len({i.item_id for i in chunks(world.items())}) == 24


def test_a_chunk_without_a_vector_is_left_out_with_the_reason(world: World) -> None:
    del world.vectors.held[world.chunks["acme", "page1#2"]["text_digest"]]
    refused = LAYER.refused(world.demand(), config())
    assert refused.schema == LEFT_OUT.schema
    assert [(r["tenant"], r["digest"], r["reason"]) for r in refused.to_pylist()] == [
        ("acme", world.keys.chunk_digest("page1#2"), "no_vector")
    ]
    assert len(chunks(world.items())) == 23


def test_no_documents_no_rows() -> None:
    assert LAYER.candidates(demand(), Config()).equals(PLAN.empty())
    assert LAYER.refused(demand(), Config()).num_rows == 0


def test_ids_follow_the_content(world: World) -> None:
    before = {i.item_id for i in world.items()}
    assert {i.item_id for i in world.items()} == before
    world.write("acme", "page0#0", "rewritten")
    after = {i.item_id for i in world.items()}
    touched = {i.item_id for i in world.items() if "page0#0" in (i.chunk_ids or ())}
    assert after - before >= {i for i in touched if i not in before}
    assert (after - before) - touched <= {i.item_id for i in lists(world.items())}


@given(st.integers(1, 30), st.integers(0, 6), st.integers(1, 8), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_nearest_rows_are_those_of_a_full_sort(
    rows: int, queries: int, top: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(rows, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = draw.normal(size=(queries, 5)).astype(np.float32)
    for query, found in zip(asked, nearest_rows(vectors, asked, top), strict=True):
        assert len(found) == min(top, rows)
        cosines = vectors @ query
        assert cosines[found] == pytest.approx(np.sort(cosines)[::-1][: len(found)], abs=1e-5)
