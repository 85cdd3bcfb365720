"""Segments and ready chunk lists are found as `layers` wrote them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import redis

from tests.layers.building import at_cosine, axis
from warmup_lib.keys import Request
from warmup_lib.layers.entries import raw
from warmup_lib.reader import Cache, Found, Reader, SyncReader
from warmup_lib.search import create_vector_index

pytestmark = pytest.mark.stack
ASK = Request("acme", "m", "How do I join two tables?")


def look(cache: Cache, **how: Any) -> Found:
    async def inside() -> Found:
        async with Reader(cache) as reader:
            return await reader.lookup(ASK, **how)

    with SyncReader(cache) as reader:
        found = reader.lookup(ASK, **how)
    assert asyncio.run(inside()) == found
    return found


def test_the_vector_of_a_segment(cache: Cache) -> None:
    key = cache.places.segment("acme", cache.keys.segment_digest("vip"))
    with redis.Redis.from_url(cache.url) as client:
        client.hset(key, mapping={"vector": raw(axis(2)), "item_id": "i"})
    found = look(cache, user_segment="vip")
    assert np.frombuffer(found.segment or b"", "<f4").tolist() == axis(2).tolist()
    assert found.evidence.looked[-1].layer == "embeddings.l2"
    assert not look(cache, user_segment="basic").segment
    assert len(look(cache, user_segment=" ").evidence.looked) == 2


def put(cache: Cache, medoid: str, vector: Any, chunk_ids: str) -> str:
    key = cache.places.list_of("acme", medoid)
    with redis.Redis.from_url(cache.url) as client:
        index = cache.places.lists("acme")
        if index.encode() not in client.execute_command("FT._LIST"):
            client.execute_command(*create_vector_index(index, cache.dimension))
        fields = {"vector": raw(vector), "chunk_ids": chunk_ids, "item_id": "i"}
        client.hset(key, mapping=fields)
    return key


def test_the_chunk_list_of_the_very_text_comes_with_the_first_look(cache: Cache) -> None:
    key = put(cache, cache.keys.text_digest(ASK.prompt), axis(0), json.dumps(["a#1", "b#2"]))
    found = look(cache, retrieves=True)
    assert found.chunk_ids == ("a#1", "b#2")
    assert [(o.layer, o.found, o.key) for o in found.evidence.looked][-1] == (
        "retrieval.l3",
        "hit",
        key,
    )
    assert look(cache).chunk_ids is None


def test_the_chunk_list_of_the_nearest_cluster_comes_with_the_second(cache: Cache) -> None:
    known = replace(cache, encode=lambda _: at_cosine(0.9))
    put(cache, "0" * 32, axis(1), json.dumps(["far#1"]))
    near = put(cache, "1" * 32, axis(0), json.dumps(["near#1"]))
    found = look(known, retrieves=True)
    assert found.chunk_ids == ("near#1",)
    last = [one for one in found.evidence.looked if one.layer == "retrieval.l3"][-1]
    assert (last.found, last.nearest) == ("hit", near)
    assert last.similarity == pytest.approx(0.9, abs=1e-5)


@pytest.mark.parametrize("held", ["no json", '{"a": 1}', "[1]"])
def test_a_damaged_chunk_list_is_a_fault(cache: Cache, held: str) -> None:
    put(cache, cache.keys.text_digest(ASK.prompt), axis(0), held)
    found = look(replace(cache, encode=lambda _: axis(0)), retrieves=True)
    assert found.chunk_ids is None
    assert {one.found for one in found.evidence.looked if one.layer == "retrieval.l3"} == {"error"}
