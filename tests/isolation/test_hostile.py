"""Ten thousand hostile names and texts in keys, index names and entries of a real Redis."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import pytest
import redis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.keys.strategies import hostile, seen
from tests.layers.building import (
    ENCODER,
    DictVectors,
    axis,
    context,
    demand,
    items,
    lookup,
    new_keys,
    prompt,
)
from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys, Request, canonical_text, check_tenant
from warmup_lib.layers.base import Context, Match
from warmup_lib.layers.responses import Responses
from warmup_lib.places import Places
from warmup_lib.targets.store import RedisStore

CASES = 10_000
LAYER = Responses()
FORM = re.compile(r"wu1:[0-9a-f]{6}:[0-9a-f]{16}:[a-z0-9.]+(:[0-9a-f]{12}:[0-9a-f]{32})?")


NEAR: Sequence[Callable[[str, str], str]] = (
    lambda _, new: new,
    lambda name, new: name + new,
    lambda name, new: new + name,
    lambda name, new: f"{name}:{new}",
    lambda name, _: f"{name}*",
    lambda name, _: f"{name[: len(name) // 2]}*",
    lambda name, _: f"{name}\u200b",
    lambda name, _: f" {name}\u3000",
    lambda name, _: name.swapcase(),
    lambda name, _: unicodedata.normalize("NFKD", name),
)
"""How a name or text comes from another one: to be taken for it, or to reach into it."""


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    drawn = seen | seen | hostile
    first = draw(drawn)
    return first, draw(st.sampled_from(NEAR))(first, draw(drawn))


class Case(NamedTuple):
    """Two names and two texts."""

    one: str
    other: str
    text: str
    asked: str


@pytest.fixture(scope="module")
def keys() -> Keys:
    return new_keys()


@pytest.fixture(scope="module")
def cases(keys: Keys) -> list[Case]:
    """All cases, each of which kept apart what is not one in keys and index names."""
    drawn: list[Case] = []

    @seed(20260314)
    @settings(
        max_examples=CASES * 3 // 2,  # some of them are drawn twice
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(pairs(), pairs())
    def draw(names: tuple[str, str], texts: tuple[str, str]) -> None:
        case = Case(*names, *texts)
        kept_apart(keys, case)
        drawn.append(case)

    draw()
    return list(dict.fromkeys(drawn))


def named(name: str) -> str | None:
    """Return a tenant's name as keys take it; None where it is none."""
    try:
        return check_tenant(name)
    except InputDataError:
        return None


def places_of(keys: Keys, tenant: str, text: str) -> list[str]:
    """Return all that a request is looked up under, and what it carries to a host."""
    request, places = Request(tenant, text, text, text, adapter=text), Places(keys, ENCODER)
    identity = keys.identity(request)
    return [
        places.embedding(tenant, identity.text),
        places.system_prompt(request, identity.head),
        places.segment(tenant, keys.segment_digest(text)),
        places.chunk(tenant, keys.chunk_digest(text)),
        places.list_of(tenant, identity.text),
        places.answer(request, identity.response),
        places.flight(request, identity.response),
        places.chunks(tenant),
        places.lists(tenant),
        places.answers(tenant),
        places.threshold(tenant),
        keys.prefix("responses", tenant),
        keys.salt(tenant, text),
    ]


def kept_apart(keys: Keys, case: Case) -> None:
    names = [named(case.one), named(case.other)]
    for name, given_name in zip(names, case[:2], strict=True):
        if name is None:
            with pytest.raises(InputDataError, match="tenant"):
                places_of(keys, given_name, case.text)
    if None in names:
        return
    own, its = (places_of(keys, name, case.text) for name in case[:2])
    assert all(re.fullmatch(r"(wu1:)?[0-9a-z.:-]+", place) for place in own)
    assert len(set(own)) == len(own)
    if names[0] == names[1]:
        assert own == its
        return
    assert not set(own) & set(its)
    for prefix in own[7:-1]:  # index names and prefixes, of which a server makes patterns
        assert not any(
            place.startswith(prefix) or fnmatchcase(place, f"{prefix}*") for place in its
        )


def test_ten_thousand_hostile_names_and_texts_are_kept_apart(cases: list[Case]) -> None:
    """The cases are what they should be: many different ones, with tenants and with none."""
    names = [(named(case.one), named(case.other)) for case in cases]
    assert len(cases) >= CASES
    assert sum(None in pair for pair in names) > CASES / 10
    assert len({pair for pair in names if None not in pair and len(set(pair)) == 2}) > CASES / 5


@pytest.fixture(scope="module")
def plain(plain_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(plain_url) as client:
        client.flushdb()
        yield client
        client.flushdb()


def storable(text: str) -> str:
    """Return a text without halves of surrogate pairs, which no entry can hold."""
    return text.encode("utf-8", "replace").decode()


@pytest.mark.stack
def test_their_entries_are_found_by_their_own_tenant_alone(
    cases: list[Case], keys: Keys, plain: redis.Redis, plain_url: str
) -> None:
    """Every case's answer is written for one tenant, and asked for by it and by another."""
    # A name that is none gets a harmless end, so that every case has two tenants.
    made = [
        Case(
            case.one if named(case.one) else f"one-{n}",
            case.other if named(case.other) else f"other-{n}",
            storable(case.text),
            storable(case.asked),
        )
        for n, case in enumerate(cases)
    ]
    vectors = DictVectors()
    ctx = context(keys, vectors)
    held: dict[tuple[str | None, str], str] = {}
    for start in range(0, len(made), 500):
        batch = made[start : start + 500]
        for case in batch:
            vectors.held[keys.text_digest(case.text)] = axis(0)
            whose = named(case.one), canonical_text(case.text)
            held.setdefault(whose, f"{whose[0]} {len(held)}")
        own, crossed, strange = asyncio.run(written_and_asked(plain_url, keys, ctx, batch, held))
        for case, mine, theirs, new in zip(batch, own, crossed, strange, strict=True):
            text, asked = canonical_text(case.text), canonical_text(case.asked)
            assert mine.value == held[named(case.one), text]
            assert theirs.value == held.get((named(case.other), text))
            assert new.value == held.get((named(case.other), asked))
    scopes: dict[bytes, int] = {}
    for key in plain.scan_iter("*", count=1000):
        assert FORM.fullmatch(key.decode().replace(f":{ENCODER}:", ":"))
        scope = key.split(b":")[2]
        scopes[scope] = scopes.get(scope, 0) + 1
    assert len(scopes) == len({name for name, _ in held})
    assert sum(scopes.values()) == len(held) > CASES / 2
    for case in made[:20]:  # a pattern of the server finds what is one's own
        match = keys.prefix("responses", case.one) + "*"
        assert len(list(plain.scan_iter(match, count=10_000))) == sum(
            name == named(case.one) for name, _ in held
        )


async def written_and_asked(
    url: str,
    keys: Keys,
    ctx: Context,
    batch: Sequence[Case],
    held: dict[tuple[str | None, str], str],
) -> tuple[list[Match], list[Match], list[Match]]:
    """Warm each case's answer, and ask for it as its tenant, as the other, and for another text."""
    store = RedisStore("plain", url, timeout_s=30)
    try:
        rows = [
            prompt(
                keys,
                named(case.one) or "",
                case.text,
                response=held[named(case.one), canonical_text(case.text)],
            )
            for case in batch
        ]
        done = await LAYER.warm(items(LAYER, demand(rows)), store, ctx)
        assert {outcome.status for outcome in done} == {"warmed"}
        asks = [(c.one, c.text) for c in batch], [(c.other, c.text) for c in batch]
        found = []
        for pairs in (*asks, [(c.other, c.asked) for c in batch]):
            looks = [lookup(keys, tenant, text) for tenant, text in pairs]
            found.append(await LAYER.find(looks, store, ctx))
        return found[0], found[1], found[2]
    finally:
        await store.close()
