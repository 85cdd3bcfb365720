"""The published vectors: the package, and a reader written from docs/keys.md alone, agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.keys.reader import Reader, canonical, embedding, params, tenant
from tests.keys.strategies import KEYS, PUBLISHED, READER, SECRET
from warmup_lib.errors import InputDataError
from warmup_lib.keys import (
    Keys,
    Request,
    canonical_params,
    canonical_text,
    check_tenant,
    embedding_text,
)

ENCODER = PUBLISHED["encoder"]


def test_the_vectors_have_the_published_form() -> None:
    file = Path(__file__).with_name("vectors.schema.json")
    schema = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(PUBLISHED)


def test_the_secret_id() -> None:
    assert KEYS.secret_id == READER.secret_id == PUBLISHED["secret_id"]


@pytest.mark.parametrize("case", PUBLISHED["canonical_text"])
def test_texts(case: dict[str, str]) -> None:
    text = case["text"]
    assert canonical_text(text) == canonical(text) == case["canonical"]
    assert embedding_text(text) == embedding(text) == case["embedding"]
    assert KEYS.text_digest(text) == case["text_digest"]
    assert READER.digest("text", prompt=case["embedding"]) == case["text_digest"]


@pytest.mark.parametrize("case", PUBLISHED["long_texts"])
def test_long_texts(case: dict[str, Any]) -> None:
    text = "".join(piece * times for piece, times in case["pieces"])
    assert len(text) == case["characters"]
    request: dict[str, Any] = {"tenant": "acme", "model": "m1", "prompt": text}
    expected = (case["text_digest"], case["response_digest"])
    ours, theirs = KEYS.identity(Request(**request)), READER.identity(request)
    assert (ours.text, ours.response) == (theirs["text"], theirs["response"]) == expected


def test_no_two_long_texts_are_one() -> None:
    for digest in ("text_digest", "response_digest"):
        assert len({case[digest] for case in PUBLISHED["long_texts"]}) == 11


@pytest.mark.parametrize("case", PUBLISHED["params"])
def test_params(case: dict[str, Any]) -> None:
    assert canonical_params(case["params"]) == params(case["params"]) == case["canonical"]


@pytest.mark.parametrize("case", PUBLISHED["tenants"])
def test_tenants(case: dict[str, Any]) -> None:
    if case["canonical"] is None:
        with pytest.raises(InputDataError, match="tenant"):
            check_tenant(case["tenant"])
        with pytest.raises(ValueError):  # noqa: PT011 - the reader has errors of its own
            tenant(case["tenant"])
        return
    assert check_tenant(case["tenant"]) == tenant(case["tenant"]) == case["canonical"]
    assert KEYS.scope(case["tenant"]) == case["scope"]
    assert READER.index("", case["tenant"]).split(":")[2] == case["scope"]


@pytest.mark.parametrize("case", PUBLISHED["requests"])
def test_requests(case: dict[str, Any]) -> None:
    request = Request(**case["request"])
    identity = KEYS.identity(request)
    assert vars(identity) == READER.identity(case["request"]) == case["identity"]
    place = {n: getattr(request, n) for n in ("model", "model_revision", "adapter")}
    for build in (KEYS.key, lambda w, t, d, **of: READER.key(w, t, d, of)):
        assert case["keys"] == {
            f"embeddings:{ENCODER}": build(f"embeddings:{ENCODER}", request.tenant, identity.text),
            f"responses:{ENCODER}": build(
                f"responses:{ENCODER}", request.tenant, identity.response, **place
            ),
            "embeddings.l1": build("embeddings.l1", request.tenant, identity.head, **place),
            "prefixes": build("prefixes", request.tenant, identity.head, **place),
        }
    assert KEYS.index("responses", request.tenant, ENCODER) == case["index"]
    assert READER.index(f"responses:{ENCODER}", request.tenant) == case["index"]
    assert KEYS.salt(request.tenant, request.adapter) == case["salt"]
    assert READER.salt(request.tenant, request.adapter) == case["salt"]


@pytest.mark.parametrize("case", PUBLISHED["requests"])
def test_the_published_parts_of_a_digest(case: dict[str, Any]) -> None:
    """The canonical parts, put in the fields of the page's table, give the published digests."""
    parts, identity = case["parts"], case["identity"]
    template = PUBLISHED["template"]
    names = ("tenant", "model", "model_revision", "adapter")
    serving = {**dict(zip(names, parts["serving"], strict=True)), "template": template}
    names = ("system_prompt", "history", "tools", "params", "dimensions")
    of = dict(zip(names, [*parts["context"], None][:5], strict=True))
    context = READER.digest("context", **serving, **of)
    assert context == identity["context"]
    response = READER.digest("response", context=context, prompt=parts["prompt"])
    assert response == identity["response"]
    system_prompt, tools = parts["head"]
    head = READER.digest("head", **serving, system_prompt=system_prompt, tools=tools)
    assert head == identity["head"]


@pytest.mark.parametrize("case", PUBLISHED["under"])
def test_contexts_under_an_adapters_weights(case: dict[str, str]) -> None:
    assert KEYS.under(case["context"], case["adapter"]) == case["digest"]
    given = {"context": case["context"], "adapter": case["adapter"]}
    assert READER.digest("under", **given) == case["digest"]


@pytest.mark.parametrize("case", PUBLISHED["names"])
def test_names(case: dict[str, str]) -> None:
    of, segment, chunk = case["tenant"], case["user_segment"], case["chunk_id"]
    assert KEYS.segment_digest(segment) == case["segment_digest"]
    assert READER.digest("user_segment", user_segment=segment) == case["segment_digest"]
    assert KEYS.chunk_digest(chunk) == case["chunk_digest"]
    assert READER.digest("chunk", chunk_id=chunk) == case["chunk_digest"]
    for key in (KEYS.key, READER.key):
        assert key(f"embeddings.l2:{ENCODER}", of, case["segment_digest"]) == case["segment_key"]
        assert key(f"retrieval:{ENCODER}", of, case["chunk_digest"]) == case["chunk_key"]
    assert KEYS.index("retrieval.l3", of, ENCODER) == case["index"]
    assert READER.index(f"retrieval.l3:{ENCODER}", of) == case["index"]


@pytest.mark.parametrize("case", PUBLISHED["layers"])
def test_layers(case: dict[str, Any]) -> None:
    word, digest = case["word"], case["digest"]
    assert KEYS.key(word, case["tenant"], digest, **case["place"]) == case["key"]
    assert READER.key(word, case["tenant"], digest, case["place"]) == case["key"]


@pytest.mark.parametrize("case", PUBLISHED["salts"])
def test_salts(case: dict[str, Any]) -> None:
    for build in (Keys(SECRET, case["template"]), Reader(SECRET, case["template"], {})):
        assert build.salt(case["tenant"], case["adapter"]) == case["salt"]
