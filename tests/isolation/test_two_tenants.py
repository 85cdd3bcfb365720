"""Two tenants who ask the same of Redis, RedisVL and a model host: each finds its own alone."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import redis
from redisvl.extensions.cache.llm import SemanticCache
from redisvl.utils.vectorize import CustomVectorizer

from tests.layers.building import (
    DIMENSION,
    ENCODER,
    DictVectors,
    at_cosine,
    axis,
    context,
    demand,
    head,
    items,
    lookup,
    new_keys,
    prompt,
)
from warmup_lib.keys import Request, embedding_text
from warmup_lib.layers.base import PlanItem
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.layers.entries import raw
from warmup_lib.layers.prefixes import Prefixes
from warmup_lib.layers.responses import Responses
from warmup_lib.reader import Cache, Found, SyncReader
from warmup_lib.search import create_vector_index
from warmup_lib.stack.state import StackState
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.store import RedisStore

QUESTION = "How do I reset my password?"
SIMILAR = "How can I reset the password?"
SYSTEM = "Answer in one sentence."
SEGMENT = "premium_vip"
FIELDS = [{"name": "context", "type": "tag"}, {"name": "signature", "type": "tag"}]
HOSTILE = (
    "acme:responses",
    "acme*",
    "{acme}",
    "acme ",
    "Acme",
    "\u0430cme",
    "a|b@c",
    "'--",
    "-acme",
)
"""Tenants named to be taken for `acme`, or to reach into its index; the fourth is `acme` itself."""

VECTORS = {embedding_text(QUESTION): axis(0), embedding_text(SIMILAR): at_cosine(0.95)}


@pytest.fixture
def cache(stack_redis: StackState) -> Iterator[Cache]:
    assert stack_redis.redis is not None
    keys = new_keys()
    yield Cache(stack_redis.redis.url, keys, ENCODER, DIMENSION, VECTORS.get, timeout_s=5)
    with redis.Redis.from_url(stack_redis.redis.url) as client:
        for index in client.execute_command("FT._LIST"):
            if keys.secret_id.encode() in index:
                client.execute_command("FT.DROPINDEX", index, "DD")


def warm(cache: Cache, *tenants: str) -> None:
    """Warm all that a Redis can hold of the same request of each tenant, in every layer."""
    keys, places = cache.keys, cache.places
    made = context(keys, DictVectors(held={keys.text_digest(QUESTION): axis(0)}))
    rows = [
        prompt(keys, tenant, QUESTION, system_prompt=SYSTEM, response=f"Answer of {tenant}")
        for tenant in tenants
    ]
    of = demand(rows, [head(keys, tenant, SYSTEM) for tenant in tenants])

    async def work() -> None:
        store = RedisStore("cache", cache.url, timeout_s=5)
        for layer in (Embeddings(), Responses()):
            outcomes = await layer.warm(items(layer, of), store, made)
            assert {outcome.status for outcome in outcomes} == {"warmed"}
        await store.close()

    asyncio.run(work())
    with redis.Redis.from_url(cache.url) as client:
        for number, tenant in enumerate(tenants):
            client.execute_command(*create_vector_index(places.lists(tenant), DIMENSION))
            fields = {"vector": raw(axis(0)), "chunk_ids": json.dumps([tenant]), "item_id": "i"}
            client.hset(places.list_of(tenant, "0" * 32), mapping=fields)
            segment = places.segment(tenant, keys.segment_digest(SEGMENT))
            vector = raw((axis(0) * number).astype(np.float32))
            client.hset(segment, mapping={"vector": vector, "item_id": "i"})


def asks(cache: Cache, tenant: str, text: str = QUESTION) -> Found:
    with SyncReader(cache) as reader:
        request = Request(tenant, "m", text, SYSTEM)
        return reader.lookup(request, user_segment=SEGMENT, retrieves=True)


def finds_nothing(cache: Cache, tenant: str) -> bool:
    """Say whether a tenant finds nothing of anyone's, whatever it asks."""
    unknowing = replace(cache, encode=None)  # else the vector is the application's own
    bare = asks(unknowing, tenant)
    found = [asks(cache, tenant, text) for text in (QUESTION, SIMILAR)]
    left = [(f.hit, f.answer, f.chunk_ids, f.head, f.segment) for f in (bare, *found)]
    return bare.vector is None and set(left) == {(False, None, None, False, None)}


@pytest.mark.stack
def test_what_one_tenant_left_on_a_redis_no_other_finds(cache: Cache) -> None:
    warm(cache, "acme")
    assert finds_nothing(cache, "beta")
    found, similar = asks(cache, "acme"), asks(cache, "acme", SIMILAR)
    assert (found.match, found.answer) == ("exact", "Answer of acme")
    assert (found.head, found.segment is None, found.vector) == (True, False, raw(axis(0)))
    assert (similar.match, similar.answer) == ("semantic", "Answer of acme")
    assert similar.chunk_ids == ("acme",)


@pytest.mark.stack
def test_tenants_who_ask_the_same_have_answers_of_their_own(cache: Cache) -> None:
    warm(cache, "acme", "beta")
    for tenant in ("acme", "beta"):
        found, similar = asks(cache, tenant), asks(cache, tenant, SIMILAR)
        assert (found.match, similar.match) == ("exact", "semantic")
        assert found.answer == similar.answer == f"Answer of {tenant}"
        assert similar.chunk_ids == (tenant,)
    assert asks(cache, "acme").segment != asks(cache, "beta").segment


@pytest.mark.stack
def test_names_that_reach_for_another_tenant_find_nothing_of_it(cache: Cache) -> None:
    warm(cache, "acme")
    strangers = [name for name in HOSTILE if name.strip() != "acme"]
    assert [finds_nothing(cache, name) for name in strangers] == [True] * len(strangers)
    assert asks(cache, "acme ").answer == "Answer of acme"
    warm(cache, *strangers)
    assert [asks(cache, name, SIMILAR).answer for name in strangers] == [
        f"Answer of {name}" for name in strangers
    ]
    assert asks(cache, "acme", SIMILAR).answer == "Answer of acme"


@pytest.mark.stack
def test_an_unmodified_redisvl_client_of_a_tenant_finds_its_own_alone(cache: Cache) -> None:
    warm(cache, "acme", "beta")
    for tenant, expected in (("acme", "acme"), ("beta", "beta"), ("gamma", None), ("acme*", None)):
        client = SemanticCache(
            name=cache.keys.index("responses", tenant, ENCODER),
            vectorizer=CustomVectorizer(
                embed=lambda text, **_: list(map(float, VECTORS.get(text.casefold(), axis(0))))
            ),
            distance_threshold=2,
            filterable_fields=FIELDS,
            redis_url=cache.url,
        )
        for text in (QUESTION, SIMILAR):
            answers = [hit["response"] for hit in client.check(text, num_results=10)]
            assert answers == ([f"Answer of {expected}"] if expected else [])
        client.disconnect()


# -- a model host ------------------------------------------------------------------------------


def planned(keys: Any, tenant: str, system: str, model: str) -> list[PlanItem]:
    return items(Prefixes(), demand(heads=[head(keys, tenant, system, model=model)]))


@pytest.mark.host
@pytest.mark.parametrize("mode", ["derived", "none"])
def test_heads_on_a_model_host(stack_host: StackState, mode: Any) -> None:
    """With derived salts, a head is its tenant's alone; without, what tenants share is seen."""
    host = stack_host.hosts[0]
    model, word = host.model or "", secrets.token_hex(8)
    system = " ".join(f"Rule {n} of {word}: parcels go back in {n} days." for n in range(30))
    keys, layer = new_keys(), Prefixes()
    bare = context(keys, DictVectors())

    async def cached(target: ModelHost, tenant: str) -> int:
        """Return how many tokens of the head a tenant's request finds.

        Each tenant has a question of its own: an equal one would leave a block that begins with
        the head's end and reaches into the question.
        """
        question = {"acme": "Who pays for it?", "beta": "What comes back?"}[tenant]
        ask = lookup(keys, tenant, question, system_prompt=system, model=model)
        [match] = await layer.find([ask], target, bare)
        return match.cached_tokens or 0

    async def work() -> tuple[list[int], bool]:
        target = ModelHost("gpu", host.url, cache_salt=mode)
        item = planned(keys, "acme", system, model)
        [outcome] = await layer.warm(item, target, bare)
        assert outcome.error is None
        tokens = [await cached(target, tenant) for tenant in ("beta", "acme", "beta")]
        [proof] = await layer.prove(item, target, bare)
        await target.close()
        return tokens, proof.resident

    (first, own, second), resident = asyncio.run(work())
    assert resident
    assert own >= 256
    assert second >= own  # what it asked itself is warm for it now
    assert first == (0 if mode == "derived" else own)
