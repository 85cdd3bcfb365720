"""Chunks and lists on a Redis, with and without search: warmed, renewed, found, removed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from tests.layers.building import (
    ENCODER,
    DictVectors,
    lookup,
    new_keys,
)
from tests.layers.pages import DIMENSION, LAYER, TOP, World, chunks, lists
from warmup_lib.lake import Lake
from warmup_lib.layers.index_file import nearest_in_file, write_index_files
from warmup_lib.targets.store import RedisStore


async def apply(world: World, store: RedisStore) -> dict[str, str]:
    """Warm the world's plan; return the status of each item by what it is."""
    ctx = world.context()
    arranged = await LAYER.arrange(world.items(), store, ctx)
    outcomes = await LAYER.warm(arranged.items, store, ctx)
    assert {o.ttl_s for o in outcomes} == {48 * 3600}
    return {
        f"{i.tenant} {i.tier or (i.chunk_ids or [''])[0]} {i.key_digest}": o.status
        for i, o in zip(arranged.items, outcomes, strict=True)
    }


@pytest.fixture(params=["search", "plain"])
def with_any(request: pytest.FixtureRequest) -> Any:
    """Run work on the Redis with the search module, or on one without."""
    return request.getfixturevalue("with_store" if request.param == "search" else "with_plain")


@pytest.mark.stack
def test_warm_prove_and_audit(with_any: Any, world: World) -> None:
    async def work(store: RedisStore) -> Any:
        ctx = world.context()
        before = await LAYER.prove(world.items(), store, ctx)
        statuses = await apply(world, store)
        after = await LAYER.prove(world.items(), store, ctx)
        return before, statuses, after, await LAYER.audit(world.items(), store, ctx)

    before, statuses, after, audit = with_any(work)
    assert {p.evidence for p in before} == {"absent"}
    assert set(statuses.values()) == {"warmed"}
    assert all(p.resident for p in after)
    assert {p.evidence for p in after} == {f"ttl={48 * 3600}s"}
    assert audit == {"lists_checked": 10, "lists_equal": 10}


@pytest.mark.stack
def test_after_one_page_changes_exactly_what_it_touched_is_written_again(
    with_any: Any, world: World
) -> None:
    old = {i.key_digest: list(i.chunk_ids or ()) for i in lists(world.items())}

    async def work(store: RedisStore) -> Any:
        await apply(world, store)
        again = await apply(world, store)
        for n in range(3):
            world.write("acme", f"page1#{n}", f"acme 1 {n}, rewritten")
        return (
            again,
            await apply(world, store),
            await LAYER.audit(world.items(), store, world.context()),
        )

    again, changed, audit = with_any(work)
    assert set(again.values()) == {"already"}
    written = {what for what, status in changed.items() if status == "warmed"}
    assert set(changed.values()) == {"warmed", "already"}
    expected = {f"acme page1#{n} {world.keys.chunk_digest(f'page1#{n}')}" for n in range(3)}
    touched = {
        item.key_digest
        for item in lists(world.items())
        if any(c.startswith("page1#") for c in [*old[item.key_digest], *(item.chunk_ids or ())])
    }
    assert written == expected | {f"acme L3 {digest}" for digest in touched if digest in _of(world)}
    assert 0 < len(touched) < 10
    assert audit == {"lists_checked": 10, "lists_equal": 10}


def _of(world: World) -> set[str]:
    return {item.key_digest for item in lists(world.items()) if item.tenant == "acme"}


@pytest.mark.stack
def test_removed_documents_go_with_their_lists_and_nobody_elses_entries_do(
    with_any: Any, world: World
) -> None:
    other = World(new_keys())

    async def work(store: RedisStore) -> Any:
        await apply(world, store)
        await apply(other, store)
        gone = [i for i in chunks(world.items()) if i.document == "page3" and i.tenant == "acme"]
        for n in range(3):
            del world.chunks["acme", f"page3#{n}"]
        world.members = [m for m in world.members if m["cluster_id"] != "acme/004"]
        ctx = world.context()
        part = await LAYER.arrange(world.items(), store, replace(ctx, complete=False))
        still = await LAYER.prove(gone, store, ctx)
        whole = await LAYER.arrange(world.items(), store, ctx)
        left = await LAYER.prove(gone, store, ctx)
        await LAYER.warm(world.items(), store, ctx)
        return (
            (part.notes, all(p.resident for p in still)),
            (whole.notes, any(p.resident for p in left)),
            all(p.resident for p in await LAYER.prove(world.items(), store, ctx)),
            all(p.resident for p in await LAYER.prove(other.items(), store, other.context())),
        )

    part, whole, ours, theirs = with_any(work)
    assert part == ((), True)
    # Three chunks, and the list of the cluster that is no more.
    assert whole == (["chunks and lists that are wanted no more, taken away: 4"], False)
    assert (ours, theirs) == (True, True)


@pytest.mark.stack
def test_an_application_finds_its_clusters_list_and_its_chunks(
    with_any: Any, world: World, request: pytest.FixtureRequest
) -> None:
    searches = "search" in request.node.callspec.id
    medoid = "acme question 2"
    near = world.vectors.held[world.known(medoid)] + 0.1 * world.vectors.held[world.known("noise")]
    near /= np.linalg.norm(near)
    [item] = [i for i in lists(world.items()) if i.key_digest == world.keys.text_digest(medoid)]
    held = list(item.chunk_ids or ())
    asked = [
        lookup(world.keys, "acme", medoid, "same", chunk_ids=held[:1]),
        lookup(world.keys, "acme", "put otherwise", "like", chunk_ids=[held[0], "x"], vector=near),
        lookup(world.keys, "acme", medoid, "nothing retrieved"),
        lookup(world.keys, "gamma", medoid, "tenant", chunk_ids=held[:1]),
    ]

    async def work(store: RedisStore) -> Any:
        await apply(world, store)
        ctx = world.context()
        fresh = replace(ctx, control="word")
        return (
            await LAYER.find_tier("L3", asked, store, ctx),
            await LAYER.find(asked, store, ctx),
            await LAYER.find_tier("L3", asked, store, fresh),
        )

    found, whole, control = with_any(work)
    assert {m.request_id: (m.asked, m.hit) for m in found} == {
        "same": (True, True),
        "like": (True, searches),  # without the search module only the medoid's own text is found
        "nothing retrieved": (False, False),
        "tenant": (True, False),
    }
    assert (found[0].item_id, json.loads(found[0].value)) == (item.item_id, held)
    assert [m.share for m in found[:2]] == [1.0, 0.5 if searches else None]
    # Of the chunks that a request retrieved all must be there.
    assert [(m.asked, m.hit) for m in whole] == [
        (True, True),
        (True, False),
        (False, False),
        (True, False),
    ]
    assert not any(m.hit for m in control)


@pytest.mark.stack
def test_a_list_that_no_search_would_give_is_noticed(
    with_store: Any, world: World, redis_url: str
) -> None:
    async def work(store: RedisStore) -> Any:
        await apply(world, store)
        item = lists(world.items())[0]
        key = world.keys.key(f"retrieval.l3:{ENCODER}", item.tenant, item.key_digest)
        wrong = [c for _, c in sorted(world.chunks) if c not in (item.chunk_ids or ())][:TOP]
        with redis.Redis.from_url(redis_url) as client:
            client.hset(key, "chunk_ids", json.dumps(wrong))
            client.delete(key.replace(item.key_digest, lists(world.items())[1].key_digest))
        return await LAYER.audit(world.items(), store, world.context())

    assert with_store(work) == {"lists_checked": 9, "lists_equal": 8}


@pytest.mark.stack
def test_what_is_damaged_is_written_again(with_store: Any, world: World, redis_url: str) -> None:
    item = chunks(world.items())[0]
    key = world.keys.key(f"retrieval:{ENCODER}", item.tenant, item.key_digest)

    async def work(store: RedisStore) -> Any:
        await apply(world, store)
        with redis.Redis.from_url(redis_url) as client:
            client.hset(key, "vector", b"short")
        proofs = await LAYER.prove([item], store, world.context())
        outcomes = await LAYER.warm([item], store, world.context())
        with redis.Redis.from_url(redis_url) as client:
            return proofs, outcomes, client.hgetall(key)

    proofs, outcomes, stored = with_store(work)
    assert proofs[0].evidence == f"vector of 5 bytes, {4 * DIMENSION} expected"
    assert outcomes[0].status == "warmed"
    assert {k.decode() for k in stored} == {
        *("item_id", "source_digest", "vector", "chunk_id", "document")
    }
    assert stored[b"chunk_id"].decode() == (item.chunk_ids or [""])[0]
    assert stored[b"document"].decode() == item.document


@pytest.mark.stack
def test_an_item_without_a_vector_or_of_another_encoder_fails_alone(
    with_store: Any, world: World
) -> None:
    made = world.items()
    world.vectors.held.pop(chunks(made)[0].text_digest or "")

    async def work(store: RedisStore) -> Any:
        await LAYER.arrange(made, store, world.context())
        mixed = await LAYER.warm(made, store, world.context())
        other = replace(world.context(), vectors=DictVectors("enc-b", DIMENSION))
        return mixed, await LAYER.warm(made[:1], store, other)

    mixed, other = with_store(work)
    assert [o.error for o in mixed if o.status == "failed"] == [
        "no vector of this text: embed the day again"
    ]
    assert other[0].error == "planned under another encoder: make a new plan"


def test_the_file_finds_what_the_redis_can_not(tmp_path: Path, world: World) -> None:
    lake = Lake(str(tmp_path))
    folder = write_index_files(lake, "p1", world.items(), world.vectors, world.keys)
    scope = world.keys.scope("acme")
    for item in lists(world.items()):
        if item.tenant != "acme":
            continue
        vector = world.vectors.held[item.key_digest]
        found = nearest_in_file(lake, folder, scope, "chunks", vector, TOP)
        assert [name for name, _ in found] == list(item.chunk_ids or ())
        [(medoid, cosine)] = nearest_in_file(lake, folder, scope, "lists", vector, 1)
        assert (medoid, round(cosine, 5)) == (item.key_digest, 1.0)
    assert not any("acme" in file.name for file in (tmp_path / "_retrieval" / "p1").iterdir())
    everything = nearest_in_file(lake, folder, scope, "lists", vector, 99)
    assert len(everything) == 5
