"""A wrong key is told by its parts, by what the gateway noted, and by guesses that lead to it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.explain.made import ENCODER, KEYS, PLACES, QUESTION, asked, looked, miss
from warmup_lib.causes import Cause
from warmup_lib.evidence import Evidence
from warmup_lib.explain import mismatch
from warmup_lib.explain.known import Known
from warmup_lib.explain.mismatch import Mismatch
from warmup_lib.explain.miss import Asked, Miss
from warmup_lib.keys import Dimension, Keys, Request
from warmup_lib.places import Places

KNOWN = Known(
    frozenset({"acme", "globex"}), {"m": frozenset({"r1", "r2"})}, frozenset({"cards-lora"})
)
ADAPTED = replace(QUESTION, adapter="cards-lora")
TALK = replace(
    QUESTION,
    history=[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
)


def answer(request: Request = QUESTION, places: Places = PLACES) -> str:
    return places.answer(request, places.keys.identity(request).response)


def vector(text: str) -> str:
    return PLACES.embedding("acme", KEYS.digest("text", text))


def told(*misses: Miss) -> list[Cause | None]:
    found = Mismatch(PLACES, KNOWN).settle(misses)
    return [found[n].cause if n in found else None for n in range(len(misses))]


def of(key: str, one: Asked | None = None, layer: str = "responses", **fields: Any) -> Cause | None:
    [cause] = told(miss(one, looked(key, layer, **fields), layer=layer))
    return cause


def test_the_contracts_own_keys_are_right() -> None:
    assert of(answer()) is None
    assert of(PLACES.answers("acme"), found="below_threshold") is None
    assert of(answer(ADAPTED), asked(ADAPTED)) is None
    assert of(vector("how do i freeze my card, please?"), layer="embeddings") is None


@pytest.mark.parametrize(
    ("key", "cause"),
    [
        (answer(replace(QUESTION, tenant="globex")), Cause.KEY_TENANT),
        (answer(replace(QUESTION, tenant="default")), Cause.KEY_TENANT),
        (PLACES.answers("globex"), Cause.KEY_TENANT),
        (answer(places=replace(PLACES, encoder="f" * 16)), Cause.KEY_ENCODER),
        (replace(PLACES, encoder="f" * 16).answers("acme"), Cause.KEY_ENCODER),
        (answer(places=Places(Keys(b"another secret, as long"), ENCODER)), Cause.KEY_DIMENSION),
        (answer(replace(QUESTION, model_revision="r2")), Cause.KEY_MODEL_REVISION),
        (answer(replace(QUESTION, model_revision=None)), Cause.KEY_MODEL_REVISION),
        (answer(replace(QUESTION, model_revision="r77")), Cause.KEY_MODEL_REVISION),
        (answer(replace(QUESTION, adapter="cards-lora")), Cause.KEY_ADAPTER),
        (f"{answer()}:mobile", Cause.KEY_DIMENSION),
        (f"{answer()}mobile", Cause.KEY_DIMENSION),
    ],
)
def test_a_key_of_something_else_is_told(key: str, cause: Cause) -> None:
    assert of(key) == cause


def test_which_tenant_a_key_was_of_is_told_without_its_name() -> None:
    key = answer(replace(QUESTION, tenant="default"))
    verdict = Mismatch(PLACES, KNOWN).settle([miss(None, looked(key))])[0]
    assert "is=a common fallback" in verdict.evidence
    assert "default" not in verdict.evidence


@pytest.mark.parametrize(
    "adapters", [{}, {"cards-lora": "cards-lora-000000000000"}, {"cards-lora": None}]
)
def test_other_weights_or_the_logged_name_of_an_adapter_are_told(adapters: Any) -> None:
    key = answer(ADAPTED, replace(PLACES, adapters=adapters))
    assert of(key, asked(ADAPTED)) == Cause.KEY_ADAPTER


def test_a_request_keyed_without_its_adapter_is_told() -> None:
    assert of(answer(), asked(ADAPTED)) == Cause.KEY_ADAPTER


def test_another_chat_template_is_told_by_what_the_gateway_says_it_had() -> None:
    key = answer(places=replace(PLACES, keys=KEYS.other("c0ffee")))
    one = miss(None, looked(key), evidence=Evidence((looked(key),), template="c0ffee"))
    assert told(one) == [Cause.KEY_TEMPLATE]


@pytest.mark.parametrize("field", ["device", "region", "hour"])
def test_a_field_of_the_row_in_the_key_is_told(field: str) -> None:
    one = asked(extra=json.dumps({"device": "mobile", "headers": {"region": "eu"}}))
    value = {"device": "mobile", "region": "eu", "hour": "12"}[field]
    keys = KEYS.other("", {field: Dimension()})
    request = replace(QUESTION, dimensions={field: value})
    assert of(answer(request, replace(PLACES, keys=keys)), one) == Cause.KEY_DIMENSION
    right = KEYS.identity(QUESTION)
    prompt = "How do I freeze my card, please?"
    for digest in (
        KEYS.digest("response", right.context, prompt, value),
        KEYS.digest("response", right.context, f"{prompt}|{field}={value}"),
    ):
        assert of(PLACES.answer(QUESTION, digest), one) == Cause.KEY_DIMENSION


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("How do I freeze my card, please?  ", Cause.KEY_NORMALISATION),
        ("how do i freeze my card, please?", Cause.KEY_NORMALISATION),
        ("How do I freeze my card please", Cause.KEY_NORMALISATION),
        ("How do I freeze", Cause.KEY_TOKENISATION),
        ("card, please?", Cause.KEY_TOKENISATION),
        ("se?", Cause.KEY_TOKENISATION),
    ],
)
def test_a_text_in_another_form_or_cut_is_told(text: str, cause: Cause) -> None:
    logged = "How do I freeze my card, please?  "
    one = asked(replace(QUESTION, prompt=logged))
    digest = KEYS.digest("response", one.context_digest, text)
    assert of(PLACES.answer(QUESTION, digest), one) == cause


def test_a_long_text_cut_to_its_end_is_told() -> None:
    text = " ".join(f"word{n}" for n in range(900))
    one = asked(replace(QUESTION, prompt=text))
    cut = " ".join(text.split(" ")[-512:])
    assert of(vector(cut), one, "embeddings") == Cause.KEY_TOKENISATION
    assert of(vector(text[-2048:]), one, "embeddings") == Cause.KEY_TOKENISATION
    assert of(vector(text[:4096]), one, "embeddings") == Cause.KEY_TOKENISATION


def test_a_history_that_was_cut_is_told() -> None:
    one = asked(TALK)
    assert of(answer(TALK), one) is None
    assert of(answer(), one) == Cause.KEY_TOKENISATION
    assert of(answer(replace(TALK, history=TALK.history[1:])), one) == Cause.KEY_TOKENISATION


def test_what_the_gateway_noted_is_believed_where_the_key_is_wrong() -> None:
    strange = PLACES.answer(QUESTION, "e" * 32)
    assert of(strange, fields=("device",)) == Cause.KEY_DIMENSION
    assert of(strange, characters=10) == Cause.KEY_TOKENISATION
    assert of(answer(), fields=("device",)) is None


def test_what_no_guess_leads_to_is_told_by_how_it_spreads() -> None:
    def strange(request: Request, digit: str) -> Miss:
        return miss(asked(request), looked(PLACES.answer(request, digit * 32)))

    other = replace(QUESTION, prompt="something else")
    third = replace(QUESTION, prompt="a third thing")
    assert told(strange(QUESTION, "1")) == [Cause.UNKNOWN]
    assert told(strange(QUESTION, "1"), strange(QUESTION, "2")) == [Cause.KEY_DIMENSION] * 2
    found = told(strange(QUESTION, "1"), strange(other, "1"), strange(third, "3"))
    assert found == [Cause.KEY_TOKENISATION] * 2 + [Cause.UNKNOWN]


def test_a_model_in_the_key_of_a_vector_is_one_field_too_many() -> None:
    key = KEYS.key(f"embeddings:{ENCODER}", "acme", asked().text_digest, model="m")
    assert of(key, layer="embeddings") == Cause.KEY_DIMENSION


def test_guessing_ends_where_it_is_in_vain_but_for_what_was_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mismatch, "_PATIENCE", 0)
    others = [replace(QUESTION, prompt=f"{n} {QUESTION.prompt}") for n in range(4)]
    texts = [one.prompt for one in others]

    def keyed(one: Request, *parts: str) -> Miss:
        place = asked(one, session_id="s7")
        digest = KEYS.digest("response", place.context_digest, *parts)
        return miss(place, looked(PLACES.answer(one, digest)))

    def all_told(tenants_own: str) -> list[str | None]:
        first, second, third, fourth = others
        made = [
            keyed(first, texts[0][-7:]),
            keyed(replace(second, tenant=tenants_own), "foreign"),
            keyed(second, texts[1][-7:]),
            keyed(second, texts[1].upper()),
            keyed(third, texts[2][-20:]),
            keyed(fourth, texts[3], "s7"),
        ]
        found = Mismatch(PLACES, KNOWN).settle(made)
        return [found[n].evidence for n in range(len(made))]

    right = ["text=last 7 characters of 34", "text=upper"]
    unknown = "no change that was tried leads to the key"
    assert all_told("acme") == [right[0], unknown, *right, unknown, unknown]
    more = ["text=last 20 characters of 34", "field=session_id"]
    assert all_told("globex") == [right[0], unknown, *right, *more]


def test_nothing_is_guessed_of_a_request_whose_text_was_removed() -> None:
    one = asked(redacted=True)
    assert of(PLACES.answer(QUESTION, "e" * 32), one) == Cause.UNKNOWN
    assert of(answer(replace(QUESTION, tenant="globex")), one) == Cause.KEY_TENANT


def test_a_key_of_another_scheme_is_compared_with_every_guess() -> None:
    assert of("app:cache:acme:42") == Cause.UNKNOWN
