"""Chunks and lists are warmed by content: what changed is written again, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers.building import (
    ENCODER,
    DictVectors,
    context,
    demand,
    items,
    lookup,
    new_keys,
    prompt,
)
from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, Demand, PlanItem
from warmup_lib.layers.corpus import nearest_rows
from warmup_lib.layers.index_file import nearest_in_file, write_index_files
from warmup_lib.layers.retrieval import Retrieval
from warmup_lib.plan.corpus import MEMBERS
from warmup_lib.tables import CHUNKS, LEFT_OUT, MICRO, PLAN
from warmup_lib.targets.store import RedisStore

LAYER = Retrieval()
DIMENSION = 16
TOP = 3


def config(**more: Any) -> Config:
    return Config.model_validate({"layers": {"retrieval": {"top": TOP, **more}}})


class World:
    """Documents of some pages of three chunks each, and clusters of prompts, per tenant."""

    def __init__(self, keys: Keys, pages: int = 4, clusters: int = 5, seed: int = 1) -> None:
        self.keys = keys
        self.draw = np.random.default_rng(seed)
        self.vectors = DictVectors(ENCODER, DIMENSION)
        self.chunks: dict[tuple[str, str], dict[str, Any]] = {}
        self.members: list[dict[str, Any]] = []
        self.prompts: list[dict[str, Any]] = []
        for tenant in ("acme", "beta"):
            for page in range(pages):
                for n in range(3):
                    self.write(tenant, f"page{page}#{n}", f"{tenant} {page} {n}")
            for number in range(clusters):
                self.cluster(tenant, number)

    def write(self, tenant: str, chunk_id: str, text: str) -> None:
        """Write a chunk, or write it anew."""
        digest = self.known(text)
        self.chunks[tenant, chunk_id] = {
            "tenant": tenant,
            "chunk_id": chunk_id,
            "chunk_digest": self.keys.chunk_digest(chunk_id),
            "document": chunk_id.split("#")[0],
            "text": text,
            "text_digest": digest,
        }

    def cluster(self, tenant: str, number: int) -> None:
        medoid = self.known(f"{tenant} question {number}")
        for text in (medoid, self.known(f"{tenant} question {number} again")):
            row = {"tenant": tenant, "cluster_id": f"{tenant}/{number:03}", "medoid": medoid}
            row |= {"text_digest": text, "similarity": 0.9, "heat_micro": (9 - number) * MICRO}
            self.members.append(row)

    def known(self, text: str) -> str:
        """Return the digest of a text that has a vector."""
        digest = self.keys.text_digest(text)
        if digest not in self.vectors.held:
            vector = self.draw.normal(size=DIMENSION).astype(np.float32)
            self.vectors.held[digest] = vector / np.linalg.norm(vector)
        return digest

    def demand(self) -> Demand:
        of = demand(self.prompts)
        return replace(
            of,
            dimension=DIMENSION,
            chunks=pa.Table.from_pylist(list(self.chunks.values()), CHUNKS.schema),
            members=pa.Table.from_pylist(self.members, MEMBERS),
            vectors=self.vectors,
        )

    def items(self, settings: Config | None = None) -> list[PlanItem]:
        return items(LAYER, self.demand(), settings or config())

    def context(self, **more: Any) -> Context:
        return context(self.keys, self.vectors, config(), complete=True, **more)

    def fresh(self, item: PlanItem) -> list[str]:
        """Return the ids of the chunks nearest to an item's medoid, by plain arithmetic."""
        ours = [c for (tenant, _), c in sorted(self.chunks.items()) if tenant == item.tenant]
        medoid = self.vectors.held[item.key_digest].astype(np.float64)
        cosines = {
            c["chunk_id"]: float(self.vectors.held[c["text_digest"]].astype(np.float64) @ medoid)
            for c in ours
        }
        return sorted(cosines, key=lambda chunk_id: -cosines[chunk_id])[:TOP]


@pytest.fixture
def world() -> World:
    return World(new_keys())


def lists(of: Sequence[PlanItem]) -> list[PlanItem]:
    return [item for item in of if item.tier == "L3"]


def chunks(of: Sequence[PlanItem]) -> list[PlanItem]:
    return [item for item in of if item.tier is None]


# -- candidates --------------------------------------------------------------------------------


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


# -- on a Redis --------------------------------------------------------------------------------


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


# -- the file for a Redis that can't search ----------------------------------------------------


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
