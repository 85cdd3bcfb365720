"""An unmodified RedisVL SemanticCache opens the index of a tenant and finds what was warmed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redisvl.extensions.cache.llm import SemanticCache
from redisvl.query.filter import Tag
from redisvl.utils.vectorize import CustomVectorizer

from tests.layers.building import (
    ENCODER,
    DictVectors,
    at_cosine,
    axis,
    context,
    demand,
    items,
    lookup,
    new_keys,
    prompt,
)
from warmup_lib.guard import tag
from warmup_lib.keys import Keys
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.layers.responses import Responses
from warmup_lib.targets.store import RedisStore

pytestmark = pytest.mark.stack
LAYER = Responses()
DISTANCE = 0.08  # 1 - encoder.threshold
FIELDS = [{"name": "context", "type": "tag"}, {"name": "signature", "type": "tag"}]
QUESTIONS = ["How do I freeze my card?", "What does a transfer to Spain cost?"]
Open = Callable[..., SemanticCache]


def vector(text: str) -> list[float]:
    """Encode as an application would: each question has an axis, others are near the first."""
    if text in QUESTIONS:
        return [float(x) for x in axis(QUESTIONS.index(text) * 2)]
    return [float(x) for x in at_cosine(0.95)]


@pytest.fixture
def keys() -> Keys:
    return new_keys()


@pytest.fixture
def ctx(keys: Keys) -> Context:
    held = {keys.text_digest(text): axis(n * 2) for n, text in enumerate(QUESTIONS)}
    return context(keys, DictVectors(held=held))


@pytest.fixture
def warmed(with_store: Any, keys: Keys, ctx: Context) -> list[PlanItem]:
    """Warm two answers of tenant acme and none of others."""
    planned = items(LAYER, demand([prompt(keys, "acme", text) for text in QUESTIONS]))

    async def warm(store: RedisStore) -> Any:
        return await LAYER.warm(planned, store, ctx)

    assert [o.status for o in with_store(warm)] == ["warmed", "warmed"]
    return planned


@pytest.fixture
def opened(keys: Keys, redis_url: str) -> Iterator[Open]:
    """Return what opens a tenant's cache with nothing but RedisVL and the index's name."""
    caches = []

    def open_cache(tenant: str, **more: Any) -> SemanticCache:
        cache = SemanticCache(
            name=keys.index("responses", tenant, ENCODER),
            vectorizer=CustomVectorizer(embed=lambda text, **_: vector(text)),
            distance_threshold=DISTANCE,
            redis_url=redis_url,
            **more,
        )
        caches.append(cache)
        return cache

    yield open_cache
    for cache in caches:
        cache.disconnect()


def test_check_finds_each_warmed_answer_by_text_and_by_vector(
    warmed: list[PlanItem], opened: Open
) -> None:
    cache = opened("acme", filterable_fields=FIELDS)
    for item in warmed:
        for asked in ({"prompt": item.text}, {"vector": vector(item.text or "")}):
            [hit] = cache.check(**asked)
            assert hit["response"] == f"Answer to {item.text}"
            assert hit["prompt"] == item.text
            assert hit["vector_distance"] == pytest.approx(0, abs=1e-6)
            assert hit["metadata"] == {"item_id": item.item_id, "plan_id": "plan-test"}
            assert hit["context"] == item.context_digest
            assert hit["signature"] == tag(item.text or "")


def test_the_threshold_is_a_cosine_distance(warmed: list[PlanItem], opened: Open) -> None:
    cache = opened("acme", filterable_fields=FIELDS)
    for cosine, found in ((0.93, True), (0.9201, True), (0.9199, False), (0.5, False)):
        hits = cache.check(vector=[float(x) for x in at_cosine(cosine)])
        assert [hit["prompt"] for hit in hits] == ([warmed[0].text] if found else [])


def test_another_tenant_finds_nothing_whatever_it_asks(
    warmed: list[PlanItem], opened: Open
) -> None:
    assert warmed
    for form in ({"filterable_fields": FIELDS}, {}, {"create_index": False}):
        tenant = f"beta-{len(form)}-{'create_index' in form}"
        if "create_index" in form:
            opened(tenant)  # without an index RedisVL answers with an error, not with nothing
        cache = opened(tenant, **form)
        for text in [*QUESTIONS, "Can I freeze my card?"]:
            assert cache.check(text, distance_threshold=2, num_results=10) == []


def test_a_client_that_does_not_create_the_index_declares_no_fields(
    warmed: list[PlanItem], opened: Open
) -> None:
    cache = opened("acme", create_index=False)
    [hit] = cache.check("Can I freeze my card?")
    assert hit["prompt"] == warmed[0].text
    for fields in (None, FIELDS[:1], FIELDS[::-1]):
        with pytest.raises(ValueError, match="does not match"):
            opened("acme", filterable_fields=fields)


def test_filters_keep_to_the_context_and_to_what_the_guard_lets_through(
    warmed: list[PlanItem], opened: Open
) -> None:
    cache = opened("acme", filterable_fields=FIELDS)
    here = Tag("context") == warmed[0].context_digest
    for text, found in (("Can I freeze my card?", True), ("Can I unfreeze my card?", False)):
        hits = cache.check(text, filter_expression=here & (Tag("signature") == tag(text)))
        assert bool(hits) is found
    other = Tag("context") == "0" * 32
    assert cache.check("Can I freeze my card?", filter_expression=other) == []


def test_what_the_client_stores_is_found_by_ours_and_what_it_drops_is_not(
    with_store: Any, warmed: list[PlanItem], opened: Open, keys: Keys, ctx: Context
) -> None:
    cache = opened("acme", filterable_fields=FIELDS)
    [hit] = cache.check(QUESTIONS[0])
    filters = {"context": warmed[0].context_digest, "signature": tag("Freeze my card")}
    cache.store("Freeze my card", "New answer", filters=filters)
    cache.drop(ids=[hit["entry_id"]])

    async def find(store: RedisStore) -> Any:
        asked = lookup(keys, "acme", QUESTIONS[0], vector=axis(0))
        return await LAYER.find([asked], store, ctx)

    [match] = with_store(find)
    assert (match.match, match.value, match.item_id) == ("semantic", "New answer", None)


def test_the_asynchronous_check_finds_them_too(warmed: list[PlanItem], opened: Open) -> None:
    cache = opened("acme", filterable_fields=FIELDS)

    async def ask() -> Any:
        found = await cache.acheck(vector=vector(QUESTIONS[1]))
        await cache.adisconnect()
        return found

    [hit] = asyncio.run(ask())
    assert hit["response"] == f"Answer to {warmed[1].text}"


def test_a_check_leaves_the_lifetime_alone(
    with_store: Any, warmed: list[PlanItem], opened: Open, ctx: Context
) -> None:
    before = with_store(lambda store: LAYER.prove(warmed, store, ctx))
    opened("acme", filterable_fields=FIELDS).check(QUESTIONS[0])
    after = with_store(lambda store: LAYER.prove(warmed, store, ctx))
    for proof in [*before, *after]:
        assert int(proof.evidence.removeprefix("ttl=").removesuffix("s")) > 47 * 3600
