"""The key contract on plain cases, and the page that publishes it."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest

from tests.keys import reader
from tests.keys.strategies import KEYS, PUBLISHED, SECRET, of
from warmup_lib.errors import InputDataError
from warmup_lib.keys import (
    FIELDS,
    KEY_VERSION,
    SAMPLING_DEFAULTS,
    Keys,
    Request,
    canonical_params,
    check_tenant,
)
from warmup_lib.places import Places

LAYERS = {layer: rest for layer, *rest in reader.rows("## On a Redis")}


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"tenant": "beta"}, {"context", "response", "head"}),
        ({"model": "n"}, {"context", "response", "head"}),
        ({"model_revision": "2"}, {"context", "response", "head"}),
        ({"adapter": "lora"}, {"context", "response", "head"}),
        ({"system_prompt": "Be kind."}, {"context", "response", "head"}),
        ({"system_prompt": "Be  brief."}, {"head"}),  # the KV cache sees every space
        ({"tools": [{"b": 1}]}, {"context", "response", "head"}),
        ({"history": [{"role": "user", "content": "Hi"}]}, {"context", "response"}),
        ({"history": [{"role": "user", "content": None}]}, {"context", "response"}),
        ({"params": {"temperature": 0.1}}, {"context", "response"}),
        ({"params": {"response_format": {"type": "json_object"}}}, {"context", "response"}),
        ({"params": {"tool_choice": "none"}}, {"context", "response"}),
        ({"params": {"chat_template_kwargs": {"enable_thinking": False}}}, {"context", "response"}),
        ({"dimensions": {"device": "tablet"}}, {"context", "response"}),
        ({"prompt": "bye"}, {"text", "response"}),
        ({"prompt": "Hello"}, {"response"}),
        ({"prompt": " hello "}, set()),
        ({"adapter": ""}, set()),
        ({"tools": []}, set()),
        ({"params": {"response_format": {"type": "text"}}}, set()),
        ({"dimensions": {"device": "web", "tier": None, "browser": "x"}}, set()),
    ],
)
def test_what_each_digest_depends_on(change: dict[str, Any], changed: set[str]) -> None:
    a, b = vars(of(system_prompt="Be brief.")), vars(of(**{"system_prompt": "Be brief."} | change))
    assert {name for name in a if a[name] != b[name]} == changed


def test_a_synonym_counts_only_for_the_dimension_that_has_it() -> None:
    phone = of(dimensions={"device": "mobile"})
    assert of(dimensions={"device": "android"}) == of(dimensions={"device": " ios "}) == phone
    assert of(dimensions={"tier": "android"}) != of(dimensions={"tier": "mobile"})
    assert of(prompt="android") != of(prompt="mobile")
    assert of(dimensions={"device": "Android"}) != phone


def test_a_dimension_that_keys_were_not_told_of_splits_nothing() -> None:
    plain = Keys(SECRET, PUBLISHED["template"])
    asked = Request("acme", "m", "hello", dimensions={"device": "tablet"})
    assert plain.identity(asked) == of()


@pytest.mark.parametrize("name", sorted(SAMPLING_DEFAULTS))
def test_absent_empty_and_default_are_one(name: str) -> None:
    for value in (None, SAMPLING_DEFAULTS[name], "", [], {}, ()):
        assert canonical_params({name: value}) == "{}"


def test_tools_that_differ_in_the_order_of_keys_are_one() -> None:
    a, b = ([{"x": 1, "y": 2}], [{"y": 2, "x": 1}])
    assert of(tools=a) == of(tools=b)
    assert of(tools=[1, 2]).head != of(tools=[2, 1]).head


def test_the_newer_name_of_a_parameter_goes_first() -> None:
    newer = {"max_completion_tokens": 64, "max_tokens": 128}
    assert canonical_params(newer) == canonical_params({"max_tokens": 64}) == '{"max_tokens":64.0}'


def test_half_of_a_surrogate_pair_is_a_character_like_others() -> None:
    halves = [of(prompt=text, system_prompt=text) for text in ("\ud800", "\udc00", "\ufffd", "")]
    assert len({one.response for one in halves}) == len({one.head for one in halves}) == 4


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InputDataError, match="at least 16 bytes"):
        Keys(b"short")


def test_the_chat_template_is_part_of_answers_heads_and_salts() -> None:
    other = Keys(SECRET, "another template")
    a, b = of(), other.identity(Request("acme", "m", "hello"))
    assert a.text == b.text
    assert not {a.context, a.response, a.head} & {b.context, b.response, b.head}
    assert KEYS.salt("t") != other.salt("t")


# -- docs/keys.md ------------------------------------------------------------------------------


def test_the_page_names_the_fields_of_every_digest() -> None:
    assert {domain: list(fields) for domain, fields in FIELDS.items()} == reader.FIELDS
    forms = {
        name for cells in reader.rows("| field | its form |") for name in reader.ticked(cells[0])
    }
    assert forms == {name for fields in FIELDS.values() for name in fields}


def test_the_page_names_the_parameters_and_the_version() -> None:
    assert dict(SAMPLING_DEFAULTS) == reader.PARAMS
    assert f"Version `{KEY_VERSION}`" in reader.PAGE


def test_the_page_names_what_is_white_space_and_which_tenants_are_refused() -> None:
    assert set(reader.WHITE) == {c for c in map(chr, range(0x110000)) if c.isspace()}
    for c in map(chr, [*range(0x3200), *range(0xD7F0, 0x10400), *range(0xE0000, 0xE0200)]):
        assert _taken(check_tenant, f"a{c}b") is _taken(reader.tenant, f"a{c}b"), hex(ord(c))


def _taken(check: Any, name: str) -> bool:
    try:
        return bool(check(name) == unicodedata.normalize("NFC", name))
    except (InputDataError, ValueError):
        return False


@pytest.mark.parametrize("case", PUBLISHED["layers"], ids=lambda case: case["layer"])
def test_the_page_says_where_the_entries_of_each_layer_lie(case: dict[str, Any]) -> None:
    digest, place, encoder, _ = LAYERS[f"`{case['layer']}`"]
    asked = {"tenant": "acme", "model": "m1", "prompt": "Hello World", "system_prompt": "Be brief."}
    request = Request(**asked | {"model_revision": "2026-03", "adapter": "cards-lora-0123456789ab"})
    assert case["place"].items() <= vars(request).items()
    identity = KEYS.identity(request)
    assert (
        case["digest"]
        == {
            **vars(identity),
            "text of a cluster's medoid": identity.text,
            "user segment": KEYS.segment_digest("premium_vip"),
            "chunk": KEYS.chunk_digest("numpy.where#1"),
        }[digest]
    )
    assert list(case["place"]) == [
        "model_revision" if name == "revision" else name
        for name in re.findall("model|revision|adapter", place.split(":")[0])
    ]
    assert case["word"] == case["layer"] + {"yes": ":" + PUBLISHED["encoder"], "no": ""}[encoder]
    places = Places(KEYS, PUBLISHED["encoder"])
    assert case["key"] == {
        "embeddings": lambda d: places.embedding("acme", d),
        "embeddings.l1": lambda d: places.system_prompt(request, d),
        "embeddings.l2": lambda d: places.segment("acme", d),
        "retrieval": lambda d: places.chunk("acme", d),
        "retrieval.l3": lambda d: places.list_of("acme", d),
        "responses": lambda d: places.answer(request, d),
    }[case["layer"]](case["digest"])


def test_every_layer_on_a_redis_has_a_vector() -> None:
    assert [f"`{case['layer']}`" for case in PUBLISHED["layers"]] == list(LAYERS)
