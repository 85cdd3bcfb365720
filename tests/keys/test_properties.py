"""What holds for all requests: equivalent ones have one identity, different ones never do."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.keys.reader import canonical, embedding, params
from tests.keys.strategies import KEYS, READER, messages, of, requests, tenants, values, words
from warmup_lib.errors import InputDataError
from warmup_lib.keys import FIELDS, SAMPLING_DEFAULTS, Request, canonical_params, embedding_text


@given(requests)
def test_a_second_implementation_has_the_same_identities(request: dict[str, Any]) -> None:
    assert vars(KEYS.identity(Request(**request))) == READER.identity(request)


@given(requests, st.randoms(use_true_random=False))
def test_what_says_the_same_has_one_identity(request: dict[str, Any], luck: random.Random) -> None:
    """Other orders, defaults said, unknown fields, empty members: nothing that an answer needs."""
    same = {name: _mixed(value, luck) for name, value in request.items()}
    unsaid = {"model_revision": "", "adapter": "", "history": [], "tools": []}
    same = unsaid | same
    given = dict(same.get("params", {}))
    defaults = {n: d for n, d in SAMPLING_DEFAULTS.items() if given.get(n) is None}
    if given.get("max_completion_tokens") is not None:
        defaults.pop("max_tokens", None)
    same["params"] = {**defaults, **{n: v for n, v in given.items() if v is not None}}
    same["params"] |= {"stream": True, "metadata": {"id": luck.random()}, "x-request-id": "7"}
    same["dimensions"] = {**same.get("dimensions", {}), "session": luck.random(), "locale": "x"}
    same["history"] = [{"refusal": None, "audio": {}, **one} for one in same["history"]]
    assert KEYS.identity(Request(**same)) == KEYS.identity(Request(**request))


def _mixed(value: Any, luck: random.Random) -> Any:
    if isinstance(value, list):
        return [_mixed(one, luck) for one in value]
    if not isinstance(value, dict):
        return value
    names = list(value)
    luck.shuffle(names)
    return {name: _mixed(value[name], luck) for name in names}


@given(requests, requests, st.data())
def test_two_requests_share_an_answer_only_where_all_its_parts_are_equal(
    request: dict[str, Any], other: dict[str, Any], data: st.DataObject
) -> None:
    """Take over some fields of another request: what the page calls its parts decides."""
    taken = data.draw(st.sets(st.sampled_from(sorted(other)), min_size=1, max_size=2))
    changed = request | {name: other[name] for name in taken}
    one, two = KEYS.identity(Request(**request)), KEYS.identity(Request(**changed))
    parts, its = READER.parts(request), READER.parts(changed)
    assert (one.context == two.context) is (parts == its)
    asked, asks = canonical(request["prompt"]), canonical(changed["prompt"])
    assert (one.response == two.response) is ((parts, asked) == (its, asks))
    assert (one.text == two.text) is (embedding(request["prompt"]) == embedding(changed["prompt"]))


CHANGES: Mapping[str, st.SearchStrategy[Any]] = {
    "tenant": tenants,
    "model": words,
    "model_revision": words,
    "adapter": words,
    "system_prompt": words,
    "history": st.lists(messages, min_size=1, max_size=2),
    "tools": st.lists(values, min_size=1, max_size=2),
    "params": st.sampled_from(sorted(SAMPLING_DEFAULTS)).map(lambda name: {name: "said"}),
    "dimensions": st.sampled_from(["device", "tier"]).map(lambda name: {name: "said"}),
    "prompt": words,
}


@pytest.mark.parametrize("field", sorted(CHANGES))
@given(st.data())
def test_each_field_splits_the_digests_that_the_page_says(field: str, data: st.DataObject) -> None:
    base: dict[str, Any] = {"tenant": "acme", "model": "m", "prompt": "hello"}
    changed = base | {field: data.draw(CHANGES[field])}
    assume(changed["tenant"] != "acme" or field != "tenant")
    assume(changed["model"] != "m" or field != "model")
    assume(embedding_text(changed["prompt"]) != "hello" or field != "prompt")
    a, b = vars(of(**base)), vars(of(**changed))
    on = {name for name in a if field in FIELDS[name]}
    if "context" in on:
        on |= {name for name in a if "context" in FIELDS[name]}
    assert {name for name in a if a[name] != b[name]} == on


# -- parameters --------------------------------------------------------------------------------


@given(st.integers(2, 2**53))
def test_numbers_are_one_whatever_their_json_type(n: int) -> None:
    assert canonical_params({"top_k": n}) == canonical_params({"top_k": float(n)})


@given(st.integers() | st.integers(2**53, 2**80), st.integers() | st.integers(2**53, 2**80))
def test_integers_are_one_only_where_they_are_equal(a: int, b: int) -> None:
    assert (canonical_params({"seed": a}) == canonical_params({"seed": b})) is (a == b)


@given(st.floats(), st.floats())
def test_floats_are_one_only_where_they_are_equal(a: float, b: float) -> None:
    one = a == b or (a != a and b != b)
    assert (canonical_params({"seed": a}) == canonical_params({"seed": b})) is one


@pytest.mark.parametrize("name", sorted(SAMPLING_DEFAULTS))
def test_true_is_no_number_and_a_number_no_text(name: str) -> None:
    said = [1, True, "1", [1], {"1": 1}, 0, False, "0", [0], "true", "null", [None]]
    written = [canonical_params({name: value}) for value in said]
    assert len(set(written)) == len(said)


@given(st.dictionaries(st.sampled_from(sorted(SAMPLING_DEFAULTS)), values))
def test_parameters_of_any_type_are_told_apart(given_params: dict[str, Any]) -> None:
    assert canonical_params(given_params) == params(given_params)


@pytest.mark.parametrize(
    "value",
    [
        b"bytes",
        {1, 2},
        object(),
        1j,
        {"a": {1}},
        {"a": 1, 2: 3},
        [float],
        pytest.param(10**5000, id="long"),
    ],
)
def test_what_no_json_holds_is_an_error_of_the_input(value: Any) -> None:
    for parts in (
        {"params": {"stop": [value]}},
        {"tools": [value]},
        {"history": [{"role": "user", "content": [value]}]},
        {"dimensions": {"tier": [value]}},
    ):
        with pytest.raises(InputDataError, match="JSON"):
            of(**parts)


def test_what_is_nested_too_deep_is_an_error_of_the_input() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputDataError, match="JSON"):
        of(tools=deep)


@pytest.mark.parametrize(
    "parts",
    [
        {"history": "text"}, {"history": {"role": "user"}}, {"history": ["text"]},
        {"history": [None]}, {"history": [["role", "user"]]}, {"tools": {"a": 1}}, {"tools": "f"},
    ],
)  # fmt: skip
def test_lists_that_are_none_are_an_error_of_the_input(parts: dict[str, Any]) -> None:
    with pytest.raises(InputDataError, match="must be"):
        of(**parts)
