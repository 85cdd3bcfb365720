"""A lookup finds what `layers` find, in one round trip where an equal request left it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import redis

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
    prompt,
)
from tests.reader.relay import Relay
from warmup_lib.errors import InputDataError
from warmup_lib.evidence import Evidence
from warmup_lib.keys import Request
from warmup_lib.layers.base import Context
from warmup_lib.layers.embeddings import Embeddings
from warmup_lib.layers.responses import Responses
from warmup_lib.places import NEIGHBOURS, Places
from warmup_lib.reader import Cache, Found, Reader, SyncReader
from warmup_lib.targets.store import RedisStore

pytestmark = pytest.mark.stack
QUESTION = "How do I reset my password?"
SIMILAR = "How can I reset the password?"
SYSTEM = "Answer in one sentence."


def finds(cache: Cache, *requests: Request, **how: Any) -> list[Found]:
    """Look requests up by both readers, which must agree."""

    async def inside() -> list[Found]:
        async with Reader(cache) as reader:
            return [await reader.lookup(request, **how) for request in requests]

    found = asyncio.run(inside())
    with SyncReader(cache) as reader:
        assert [reader.lookup(request, **how) for request in requests] == found
    return found


def warmed(cache: Cache, rows: Sequence[dict[str, Any]], vectors: dict[str, Any]) -> Context:
    """Warm the answers and embeddings of some rows of demand, as an apply does."""
    held = {cache.keys.text_digest(text): vector for text, vector in vectors.items()}
    made = context(cache.keys, DictVectors(held=held), adapters=cache.adapters)
    heads = [head(cache.keys, "acme", SYSTEM)]

    async def work() -> None:
        store = RedisStore("cache", cache.url, timeout_s=5)
        for layer in (Embeddings(), Responses()):
            planned = items(layer, demand(rows, heads))
            outcomes = await layer.warm(planned, store, made)
            assert {outcome.status for outcome in outcomes} == {"warmed"}
        await store.close()

    asyncio.run(work())
    return made


def looks(found: Found) -> list[tuple[str, str]]:
    return [(look.layer, look.found) for look in found.evidence.looked]


def encoded(cache: Cache, vectors: dict[str, Any]) -> Cache:
    """Return the cache with an encoder that knows some canonical texts."""
    return replace(cache, encode=lambda text: vectors.get(text))


def test_what_an_apply_left_is_found_in_every_layer(cache: Cache) -> None:
    row = prompt(cache.keys, "acme", QUESTION, system_prompt=SYSTEM)
    warmed(cache, [row], {QUESTION: axis(0)})
    [found] = finds(cache, Request("acme", "m", QUESTION, SYSTEM))
    assert (found.hit, found.layer, found.match, found.similarity) == (
        True,
        "responses",
        "exact",
        None,
    )
    assert found.answer == f"Answer to {QUESTION}"
    assert found.item_id == items(Responses(), demand([row]))[0].item_id
    assert found.key == cache.places.answer(Request("acme", "m", ""), row["response_digest"])
    assert np.frombuffer(found.vector or b"", "<f4").tolist() == axis(0).tolist()
    assert found.head
    assert looks(found) == [("embeddings", "hit"), ("responses", "hit"), ("embeddings.l1", "hit")]


def test_evidence_says_where_and_under_what_it_was_looked(cache: Cache) -> None:
    row = prompt(cache.keys, "acme", QUESTION)
    warmed(cache, [row], {QUESTION: axis(0)})
    known = encoded(cache, {SIMILAR.casefold(): at_cosine(0.5)})
    [found] = finds(known, Request("acme", "m", SIMILAR))
    evidence = Evidence.from_dict(json.loads(json.dumps(found.evidence.to_dict())))
    assert evidence == found.evidence
    assert (evidence.secret_id, evidence.encoder) == (cache.keys.secret_id, ENCODER)
    with redis.Redis.from_url(cache.url) as client:
        assert evidence.redis_epoch == client.info("server")["run_id"]
    last = evidence.looked[-1]
    assert (last.layer, last.found, last.threshold) == ("responses", "below_threshold", 0.92)
    assert last.key == cache.places.answers("acme")
    assert last.nearest == cache.places.answer(Request("acme", "m", ""), row["response_digest"])
    assert last.similarity == pytest.approx(0.5, abs=1e-6)
    assert QUESTION not in json.dumps(found.evidence.to_dict())


CASES = [  # the entry's question, ours, cosine of both: whether it is served, and the last look
    (QUESTION, SIMILAR, 0.93, "hit"),
    (QUESTION, SIMILAR, 0.91, "below_threshold"),
    ("Refund 20 euro", "Refund 50 euro", 0.999, "guard_refused"),
    ("I can log in", "I can't log in", 0.999, "guard_refused"),
]


@pytest.mark.parametrize(("stored", "asked", "cosine", "last"), CASES)
def test_a_similar_question_is_served_as_the_layer_serves_it(
    cache: Cache, stored: str, asked: str, cosine: float, last: str
) -> None:
    made = warmed(cache, [prompt(cache.keys, "acme", stored)], {stored: axis(0)})
    known = encoded(cache, {asked.casefold(): at_cosine(cosine)})
    [found] = finds(known, Request("acme", "m", asked))
    assert looks(found)[-1] == ("responses", last)
    assert_as_layer(made, cache, found, asked, at_cosine(cosine))


def assert_as_layer(
    made: Context, cache: Cache, found: Found, asked: str, vector: Any, **more: Any
) -> None:
    async def layer() -> Any:
        store = RedisStore("cache", cache.url, timeout_s=5)
        one = lookup(cache.keys, "acme", asked, vector=vector, **more)
        [match] = await Responses().find([one], store, made)
        await store.close()
        return match

    match = asyncio.run(layer())
    assert (match.hit, match.match, match.value, match.item_id) == (
        found.hit,
        found.match,
        found.answer,
        found.item_id,
    )
    assert match.similarity == (found.similarity and pytest.approx(found.similarity, abs=1e-6))


def test_both_serve_the_same_of_many(cache: Cache) -> None:
    """Random vectors and contexts: the reader gives what `layers.responses` gives, each time."""
    draw = np.random.default_rng(20260314)
    texts = [f"How do I pay bill {n % 4}, please? {'Really' * (n % 3)}" for n in range(40)]
    near = {t: unit(axis(0) + 0.12 * draw.normal(size=DIMENSION)) for t in texts}
    rows = [
        prompt(cache.keys, "acme", text, system_prompt=SYSTEM if n % 2 else None)
        for n, text in enumerate(dict.fromkeys(texts))
    ]
    made = warmed(cache, rows, near)
    kinds = []
    for n in range(60):
        asked = f"Please, how do I pay bill {n % 5}?" if n % 3 else texts[n % 40]
        system = SYSTEM if n % 4 < 2 else None
        vector = near.get(asked, unit(axis(0) + 0.12 * draw.normal(size=DIMENSION)))
        known = encoded(cache, {asked.casefold(): vector})
        with SyncReader(known) as reader:
            found = reader.lookup(Request("acme", "m", asked, system))
        assert_as_layer(made, cache, found, asked, vector, system_prompt=system)
        kinds.append(found.match)
    assert set(kinds) == {"exact", "semantic", None}


def unit(vector: Any) -> Any:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def test_many_refused_neighbours_hide_none_that_fits(cache: Cache) -> None:
    refused = [f"Refund order {n}" for n in range(NEIGHBOURS + 4)]
    rows = [prompt(cache.keys, "acme", text) for text in [*refused, "Refund order 77"]]
    vectors = dict.fromkeys(refused, at_cosine(0.99)) | {"Refund order 77": at_cosine(0.93)}
    warmed(cache, rows, vectors)
    known = encoded(cache, {"please refund order 77": axis(0)})
    [found] = finds(known, Request("acme", "m", "Please refund order 77"))
    assert (found.match, found.answer) == ("semantic", "Answer to Refund order 77")


def test_a_calibrated_threshold_goes_before_the_given_one(cache: Cache) -> None:
    warmed(cache, [prompt(cache.keys, "acme", QUESTION)], {QUESTION: axis(0)})
    known = encoded(cache, {SIMILAR.casefold(): at_cosine(0.93)})
    ask = Request("acme", "m", SIMILAR)
    with redis.Redis.from_url(cache.url) as client:
        for stored, hit in (("0.94", False), ("0.90", True), ("2.0", False), ("never", True)):
            client.hset(cache.places.threshold("acme"), "threshold", stored)
            [found] = finds(known, ask)
            assert found.hit is hit, stored
        client.delete(cache.places.threshold("acme"))


def test_nothing_is_found_of_another_tenant_model_adapter_or_secret(cache: Cache) -> None:
    warmed(cache, [prompt(cache.keys, "acme", QUESTION)], {QUESTION: axis(0)})
    known = encoded(cache, {QUESTION.casefold(): axis(0)})
    strangers = [
        Request("beta", "m", QUESTION),
        Request("acme", "n", QUESTION),
        Request("acme", "m", QUESTION, adapter="lora"),
        Request("acme", "m", QUESTION, params={"temperature": 0.1}),
        Request("acme", "m", QUESTION, SYSTEM),
    ]
    assert [found.hit for found in finds(known, *strangers)] == [False] * len(strangers)
    assert [f.hit for f in finds(known, Request("acme", "m", QUESTION))] == [True]


def test_an_answer_of_an_adapter_is_found_under_its_present_weights(cache: Cache) -> None:
    named = replace(cache, adapters={"cards": "cards-0123456789ab"})
    rows = [prompt(cache.keys, "acme", QUESTION, adapter="cards")]
    warmed(named, rows, {QUESTION: axis(0)})
    asked = [Request("acme", "m", text, adapter="cards") for text in (QUESTION, SIMILAR)]
    known = encoded(named, {SIMILAR.casefold(): at_cosine(0.95)})
    assert [found.match for found in finds(known, *asked)] == ["exact", "semantic"]
    newer = replace(known, adapters={"cards": "cards-ffffffffffff"})
    assert [found.match for found in finds(newer, *asked)] == [None, None]


@pytest.mark.parametrize(
    ("headers", "params", "bypass"),
    [
        ({"Cache-Control": "no-cache"}, {}, "header"),
        ({"cache-control": "no-store, max-age=60"}, {}, "header"),
        ({"cache-control": "max-age=0"}, {}, "header"),
        ({"PRAGMA": "no-cache"}, {}, "header"),
        ({}, {"skip_cache": True}, "parameter"),
        ({}, {"disable_cache": "true"}, "parameter"),
        ({}, {"cache_enabled": False}, "parameter"),
        ({"cache-control": "max-age=60", "X-Request-ID": "7f3a"}, {"skip_cache": "no"}, None),
        ({"x-request-id": "another"}, {"user": "u-1", "stream": True}, None),
    ],
)
def test_headers_and_parameters_tell_the_caches_to_stand_aside(
    cache: Cache, headers: dict[str, str], params: dict[str, Any], bypass: str | None
) -> None:
    warmed(cache, [prompt(cache.keys, "acme", QUESTION)], {QUESTION: axis(0)})
    [found] = finds(cache, Request("acme", "m", QUESTION, params=params), headers=headers)
    assert (found.evidence.bypass, found.hit) == (bypass, bypass is None)
    assert bool(found.evidence.looked) is (bypass is None)


def test_an_equal_request_takes_one_round_trip_and_a_similar_one_two(cache: Cache) -> None:
    rows = [prompt(cache.keys, "acme", QUESTION, system_prompt=SYSTEM)]
    warmed(cache, rows, {QUESTION: axis(0)})
    equal = Request("acme", "m", QUESTION, SYSTEM)
    similar = Request("acme", "m", SIMILAR, SYSTEM)
    known = encoded(cache, {SIMILAR.casefold(): at_cosine(0.95)})
    how: dict[str, Any] = {"user_segment": "vip", "retrieves": True}
    with Relay(cache.url) as relay:
        relayed = replace(known, url=relay.url)
        with SyncReader(relayed) as reader:
            reader.lookup(equal)  # connects
            assert turns(relay, lambda: reader.lookup(equal, **how)) == (1, "exact")
            assert turns(relay, lambda: reader.lookup(similar)) == (2, "semantic")

        async def inside() -> None:
            async with Reader(relayed) as reader:
                await reader.lookup(equal)
                before = relay.turns
                assert (await reader.lookup(equal, **how)).match == "exact"
                assert relay.turns - before == 1

        asyncio.run(inside())


def turns(relay: Relay, look: Any) -> tuple[int, str]:
    before = relay.turns
    match = look().match
    return relay.turns - before, match


def test_reading_prolongs_no_lifetime_and_what_is_stored_has_one(cache: Cache) -> None:
    short = replace(cache, ttl_s=100)
    ask = Request("acme", "m", QUESTION)
    with SyncReader(short) as reader, redis.Redis.from_url(cache.url) as client:
        found = reader.lookup(ask)
        assert reader.store(ask, "By the link.", axis(0).tobytes())
        key = cache.places.answer(ask, cache.keys.identity(ask).response)
        vector_key = cache.places.embedding("acme", cache.keys.text_digest(QUESTION))
        ends = client.pexpiretime(key)
        assert abs(ends / 1000 - time.time() - 100) <= 2
        assert client.pexpiretime(vector_key) == ends
        time.sleep(0.01)
        found = reader.lookup(ask)
        assert (found.answer, found.item_id) == ("By the link.", None)
        assert client.pexpiretime(key) == ends


def test_an_answer_stored_by_a_reader_serves_similar_questions_and_redisvl(cache: Cache) -> None:
    from redisvl.extensions.cache.llm import SemanticCache
    from redisvl.utils.vectorize import CustomVectorizer

    ask = Request("acme", "m", QUESTION)
    with SyncReader(encoded(cache, {SIMILAR.casefold(): at_cosine(0.95)})) as reader:
        assert reader.store(ask, "By the link.", axis(0).tobytes())
        found = reader.lookup(Request("acme", "m", SIMILAR))
        assert (found.match, found.answer) == ("semantic", "By the link.")
        assert not reader.lookup(Request("beta", "m", SIMILAR)).hit
        assert reader.store(Request("acme", "m", "no vector"), "x")
        assert reader.lookup(Request("acme", "m", "no vector")).match == "exact"
        assert not reader.store(ask, "")
    fields = [{"name": "context", "type": "tag"}, {"name": "signature", "type": "tag"}]
    semantic = SemanticCache(
        name=cache.places.answers("acme"),
        vectorizer=CustomVectorizer(embed=lambda *_, **__: [float(x) for x in axis(0)]),
        distance_threshold=0.08,
        filterable_fields=fields,
        redis_url=cache.url,
    )
    [hit] = semantic.check(vector=[float(x) for x in axis(0)])
    assert (hit["response"], hit["prompt"]) == ("By the link.", QUESTION)
    semantic.disconnect()


def test_damaged_entries_are_misses_with_a_reason(cache: Cache) -> None:
    ask = Request("acme", "m", QUESTION, SYSTEM)
    identity = cache.keys.identity(ask)
    places: Places = cache.places
    answer, vector = places.answer(ask, identity.response), places.embedding("acme", identity.text)
    l2 = places.segment("acme", cache.keys.segment_digest("vip"))
    with redis.Redis.from_url(cache.url) as client:
        client.set(answer, "no hash", ex=60)
        client.set(vector, b"short", ex=60)
        client.set(places.system_prompt(ask, identity.head), "no hash", ex=60)
        client.hset(l2, "strange", "x")
        [found] = finds(cache, ask, user_segment="vip")
        assert not found.hit
        assert [(look.found, look.error) for look in found.evidence.looked] == [
            ("error", "ValueError"),
            ("error", "ResponseError"),
            ("error", "ResponseError"),
            ("absent", None),
        ]
        client.delete(answer, vector, l2)
        client.hset(answer, mapping={"response": b"\xff", "metadata": "{}"})
        client.hset(l2, "vector", b"xyz")
        [found] = finds(cache, ask, user_segment="vip")
        assert [(look.found, look.error) for look in found.evidence.looked] == [
            ("absent", None),
            ("error", "UnicodeDecodeError"),
            ("error", "ResponseError"),
            ("error", "ValueError"),
        ]
        client.delete(answer, l2)


def test_an_encoder_that_fails_is_a_fault_and_one_that_cannot_read_a_text_is_none(
    cache: Cache,
) -> None:
    def broken(_: str) -> list[float]:
        raise RuntimeError("out of memory")

    ask = Request("acme", "m", QUESTION)
    [found] = finds(replace(cache, encode=broken), ask)
    last = found.evidence.looked[-1]
    assert (last.layer, last.found, last.error) == ("responses", "error", "RuntimeError")
    [found] = finds(replace(cache, encode=lambda _: None), ask)
    assert looks(found) == [("embeddings", "absent"), ("responses", "absent")]


@pytest.mark.parametrize("tenant", ["", " ", "*", "a\nb"])
def test_no_key_without_a_tenant(cache: Cache, tenant: str) -> None:
    with SyncReader(cache) as reader, pytest.raises(InputDataError):
        reader.lookup(Request(tenant, "m", QUESTION))
