"""The key contract: published vectors, and what holds for every text, tenant and parameter."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from warmup_lib.errors import InputDataError
from warmup_lib.keys import (
    SAMPLING_DEFAULTS,
    Keys,
    Request,
    canonical_params,
    canonical_text,
    check_tenant,
    embedding_text,
)

PUBLISHED = json.loads(Path(__file__).with_name("vectors.json").read_text(encoding="utf-8"))
KEYS = Keys(bytes.fromhex(PUBLISHED["secret_hex"]), PUBLISHED["template"])
OTHER = Keys(b"another secret, sixteen bytes or more")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)
tenants = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)
spaces = st.sampled_from([" ", "  ", "\t", " \t ", "\u00a0", "\u3000"])


# -- published vectors -------------------------------------------------------------------------


def independent_digest(domain: str, *parts: str) -> str:
    """Take a digest as docs/keys.md describes it, with nothing of the package."""
    data = b"".join(len(p.encode()).to_bytes(8, "big") + p.encode() for p in (domain, *parts))
    return hmac.new(bytes.fromhex(PUBLISHED["secret_hex"]), data, hashlib.sha256).hexdigest()[:32]


@pytest.mark.parametrize("case", PUBLISHED["canonical_text"])
def test_published_texts(case: dict[str, str]) -> None:
    assert canonical_text(case["text"]) == case["canonical"]
    assert embedding_text(case["text"]) == case["embedding"]
    assert KEYS.text_digest(case["text"]) == case["text_digest"]
    assert independent_digest("text", case["embedding"]) == case["text_digest"]


@pytest.mark.parametrize("case", PUBLISHED["params"])
def test_published_params(case: dict[str, Any]) -> None:
    assert canonical_params(case["params"]) == case["canonical"]


@pytest.mark.parametrize("case", PUBLISHED["requests"])
def test_published_requests(case: dict[str, Any]) -> None:
    request = Request(**case["request"])
    identity = KEYS.identity(request)
    assert vars(identity) == case["identity"]
    built = {
        layer: KEYS.key(
            layer,
            request.tenant,
            digest,
            model=request.model,
            model_revision=request.model_revision,
            adapter=request.adapter,
        )
        for layer, digest in (
            (f"responses:{PUBLISHED['encoder']}", identity.response),
            ("prefixes", identity.head),
        )
    }
    layer = f"embeddings:{PUBLISHED['encoder']}"
    built[layer] = KEYS.key(layer, request.tenant, identity.text)
    assert built == case["keys"]
    assert KEYS.index("responses", request.tenant, PUBLISHED["encoder"]) == case["index"]
    assert KEYS.salt(request.tenant, request.adapter) == case["salt"]


@pytest.mark.parametrize("case", PUBLISHED["names"])
def test_published_names(case: dict[str, str]) -> None:
    segment, chunk = case["user_segment"], case["chunk_id"]
    assert KEYS.segment_digest(segment) == case["segment_digest"]
    assert independent_digest("user_segment", segment) == case["segment_digest"]
    assert KEYS.chunk_digest(chunk) == case["chunk_digest"]
    assert independent_digest("chunk", chunk) == case["chunk_digest"]
    encoder, tenant = PUBLISHED["encoder"], case["tenant"]
    found = KEYS.key(f"embeddings.l2:{encoder}", tenant, case["segment_digest"])
    assert found == case["segment_key"]
    assert KEYS.key(f"retrieval:{encoder}", tenant, case["chunk_digest"]) == case["chunk_key"]
    assert KEYS.index("retrieval.l3", tenant, encoder) == case["index"]


@pytest.mark.parametrize("case", PUBLISHED["under"])
def test_published_contexts_under_an_adapters_weights(case: dict[str, str]) -> None:
    assert KEYS.under(case["context"], case["adapter"]) == case["digest"]
    assert independent_digest("under", case["context"], case["adapter"]) == case["digest"]


def test_the_published_parts_of_a_digest() -> None:
    """The canonical parts that the documentation lists give the published digests."""
    for case in PUBLISHED["requests"]:
        parts, identity = case["parts"], case["identity"]
        common = [*parts["serving"], PUBLISHED["template"]]
        context = independent_digest("context", *common, *parts["context"])
        assert context == identity["context"]
        assert independent_digest("response", context, parts["prompt"]) == identity["response"]
        assert independent_digest("head", *common, *parts["head"]) == identity["head"]
        tenant = independent_digest("tenant", parts["serving"][0])[:16]
        assert case["index"].split(":")[2] == tenant
        secret = bytes.fromhex(PUBLISHED["secret_hex"])
        secret_id = hashlib.sha256(b"warmup-secret-id\0" + secret).hexdigest()[:6]
        assert case["index"].split(":")[1] == secret_id == PUBLISHED["secret_id"]


# -- texts -------------------------------------------------------------------------------------


@given(st.lists(words, min_size=1, max_size=5), spaces, spaces)
def test_white_space_outside_code_is_folded(parts: list[str], one: str, other: str) -> None:
    assert canonical_text(f" {one.join(parts)}{one}") == canonical_text(other.join(parts))


@given(words, st.text(" \t\nab", max_size=20))
def test_code_blocks_keep_their_white_space(word: str, code: str) -> None:
    block = f"```{code}```"
    assert block in canonical_text(f"{word}  \n\n {block}  {word}")


@given(texts)
def test_newline_styles_are_one(text: str) -> None:
    assume("\r" not in text)
    assert canonical_text(text.replace("\n", "\r\n")) == canonical_text(text)


@given(texts)
def test_folding_twice_changes_nothing(text: str) -> None:
    once = canonical_text(text)
    assert canonical_text(once) == once


@given(texts)
def test_case_matters_to_answers_and_not_to_embeddings(text: str) -> None:
    upper = text.upper()
    assume(canonical_text(upper) != canonical_text(text))
    assume(embedding_text(upper) == embedding_text(text))
    lower_id = KEYS.identity(Request("t", "m", text))
    upper_id = KEYS.identity(Request("t", "m", upper))
    assert lower_id.text == upper_id.text
    assert lower_id.response != upper_id.response


@given(words, st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_number_is_never_blanked_out(word: str, a: int, b: int) -> None:
    assume(a != b)
    ids = [KEYS.identity(Request("t", "m", f"{word} {n}")) for n in (a, b)]
    assert ids[0].response != ids[1].response
    assert ids[0].text != ids[1].text


@given(st.integers(1, 5000), words)
def test_identities_are_taken_before_any_truncation(length: int, word: str) -> None:
    long = "a " * length
    assert KEYS.text_digest(long + word) != KEYS.text_digest(long + word + "x")


# -- parameters and dimensions -----------------------------------------------------------------


@given(st.dictionaries(st.sampled_from(["stream", "user", "metadata", "x-id", "store"]), texts))
def test_what_is_not_on_the_list_cannot_split_the_keys(other: dict[str, str]) -> None:
    assert canonical_params(other) == "{}"
    request = Request("t", "m", "hello", params={"temperature": 0.5})
    more = Request("t", "m", "hello", params={"temperature": 0.5, **other})
    assert KEYS.identity(request) == KEYS.identity(more)


@pytest.mark.parametrize("name", sorted(SAMPLING_DEFAULTS))
def test_absent_null_and_default_are_one(name: str) -> None:
    assert canonical_params({name: None}) == "{}"
    assert canonical_params({name: SAMPLING_DEFAULTS[name]}) == "{}"


@given(st.integers(2, 100))
def test_numbers_are_one_whatever_their_json_type(n: int) -> None:
    assert canonical_params({"top_k": n}) == canonical_params({"top_k": float(n)})


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
        ({"params": {"temperature": 0.1}}, {"context", "response"}),
        ({"params": {"response_format": {"type": "json_object"}}}, {"context", "response"}),
        ({"prompt": "Hello"}, {"response"}),
        ({"prompt": " hello "}, set()),
        ({"adapter": ""}, set()),
        ({"tools": []}, set()),
    ],
)
def test_what_each_digest_depends_on(change: dict[str, Any], changed: set[str]) -> None:
    base: dict[str, Any] = {"tenant": "acme", "model": "m", "prompt": "hello"}
    base |= {"system_prompt": "Be brief."}
    a, b = vars(KEYS.identity(Request(**base))), vars(KEYS.identity(Request(**base | change)))
    assert {name for name in a if a[name] != b[name]} == changed


def test_tools_that_differ_in_the_order_of_keys_are_one() -> None:
    a, b = ([{"x": 1, "y": 2}], [{"y": 2, "x": 1}])
    assert KEYS.identity(Request("t", "m", "p", tools=a)) == KEYS.identity(
        Request("t", "m", "p", tools=b)
    )


@given(texts, texts, texts)
def test_parts_do_not_run_into_each_other(a: str, b: str, c: str) -> None:
    assume(b)
    assert KEYS.digest("d", a, b + c) != KEYS.digest("d", a + b, c)
    assert KEYS.digest("d", a, b) != KEYS.digest("d", a + b)


# -- tenants and keys --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tenant", ["", " ", "\t\n", "*", "**", "?", "%", " * ", "\u00a0", "\u3000", "a\nb", "a\0"]
)
def test_no_key_without_a_tenant(tenant: str) -> None:
    request = Request(tenant, "m", "hello")
    for build in (
        lambda: check_tenant(tenant),
        lambda: KEYS.scope(tenant),
        lambda: KEYS.key("responses", tenant, "0" * 32),
        lambda: KEYS.prefix("responses", tenant),
        lambda: KEYS.index("responses", tenant, "enc"),
        lambda: KEYS.salt(tenant),
        lambda: KEYS.identity(request),
    ):
        with pytest.raises(InputDataError, match="tenant"):
            build()


@given(tenants, tenants, words)
def test_two_tenants_share_nothing_but_the_text(one: str, other: str, text: str) -> None:
    assume(one != other)
    a, b = (KEYS.identity(Request(t, "m", text)) for t in (one, other))
    assert a.text == b.text
    assert not {a.context, a.response, a.head} & {b.context, b.response, b.head}
    assert KEYS.key("embeddings:e", one, a.text) != KEYS.key("embeddings:e", other, a.text)
    assert KEYS.index("responses", one, "e") != KEYS.index("responses", other, "e")
    assert KEYS.salt(one) != KEYS.salt(other)


@given(tenants, words)
def test_a_key_holds_no_content_and_nothing_that_redis_takes_for_a_pattern(
    tenant: str, text: str
) -> None:
    identity = KEYS.identity(Request(tenant, "m", text))
    key = KEYS.key("responses:e", tenant, identity.response, model="m", adapter=text)
    assert re.fullmatch(r"wu1:[0-9a-f]{6}:[0-9a-f]{16}:responses:e:[0-9a-f]{12}:[0-9a-f]{32}", key)
    assert key.startswith(KEYS.index("responses", tenant, "e") + ":")
    assert key.startswith(KEYS.prefix("responses", tenant))


@given(tenants, st.none() | words)
def test_a_salt_is_one_that_engines_take(tenant: str, adapter: str | None) -> None:
    assert re.fullmatch("[0-9a-f]{64}", KEYS.salt(tenant, adapter))
    assert (KEYS.salt(tenant, adapter) == KEYS.salt(tenant)) is (adapter is None)


@given(tenants, words)
def test_another_secret_shares_no_key(tenant: str, text: str) -> None:
    a, b = (k.identity(Request(tenant, "m", text)) for k in (KEYS, OTHER))
    assert not set(vars(a).values()) & set(vars(b).values())
    assert KEYS.prefix("x", tenant) != OTHER.prefix("x", tenant)
    assert KEYS.secret_id != OTHER.secret_id


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InputDataError, match="at least 16 bytes"):
        Keys(b"short")


def test_the_chat_template_is_part_of_answers_heads_and_salts() -> None:
    other = Keys(bytes.fromhex(PUBLISHED["secret_hex"]), "another template")
    a, b = (k.identity(Request("t", "m", "p")) for k in (KEYS, other))
    assert a.text == b.text
    assert not {a.context, a.response, a.head} & {b.context, b.response, b.head}
    assert KEYS.salt("t") != other.salt("t")
