"""A gateway's request and its log row have one identity, whatever came with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.config import Config
from warmup_lib.errors import InputDataError
from warmup_lib.evidence import Evidence, Looked
from warmup_lib.ingest.dialects.jsonl import Jsonl
from warmup_lib.ingest.outcome import Kept, Raw
from warmup_lib.ingest.prepare import COLUMNS, Preparer
from warmup_lib.ingest.times import Clock
from warmup_lib.keys import Keys
from warmup_lib.reader import Found, Heard, log_row, request_of
from warmup_lib.reader.openai import can_keep, can_serve, chat_body

KEYS = Keys(b"s" * 32)
AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant"]), "content": TEXT}
)
BODY = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["m", "other"]),
        "messages": st.lists(MESSAGE, max_size=4).map(
            lambda some: [*some, {"role": "user", "content": "And now?"}]
        ),
    },
    optional={
        "temperature": st.sampled_from([0, 1, 0.2, None]),
        "max_tokens": st.integers(1, 9),
        "stream": st.booleans(),
        "skip_cache": st.booleans(),
        "user": TEXT,
        "tools": st.just([{"type": "function", "function": {"name": "f"}}]),
    },
)


@settings(max_examples=300)
@given(BODY, st.sampled_from([None, "cards"]))
def test_the_log_row_is_read_back_with_the_identity_that_was_looked_up(
    body: dict[str, Any], adapter: str | None
) -> None:
    request = request_of("acme", body, adapter=adapter)
    found = Found(False, Evidence((Looked("responses", "absent", "wu1:k"),), secret_id="ab12cd"))
    headers = {"cache-control": "no-cache", "authorization": "Bearer s3cret", "pragma": "no-cache"}
    row = log_row("gw-1", AT, request, body["messages"], found, headers=headers, status=200)
    line = json.dumps(row)
    assert "s3cret" not in line
    kept = prepared(json.loads(line))
    identity = KEYS.identity(request)
    assert (kept["text_digest"], kept["context_digest"]) == (identity.text, identity.context)
    assert (kept["response_digest"], kept["head_digest"]) == (identity.response, identity.head)
    assert (kept["bypass"], kept["status"], kept["adapter"]) == (True, 200, adapter)
    evidence = json.loads(kept["extra"])["cache_evidence"]
    assert Evidence.from_dict(evidence) == found.evidence


def prepared(row: dict[str, Any]) -> dict[str, Any]:
    clock = Clock(Config().zone, as_of=AT)
    made = Preparer(Jsonl(), "s", clock, Config(), KEYS).prepare(Raw(1, 0, 9, row))
    assert isinstance(made, Kept), made
    return dict(zip(COLUMNS, made.values, strict=True))


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"model": "", "messages": []},
        {"model": "m"},
        {"model": "m", "messages": "hi"},
        {"model": "m", "messages": [{"role": "system", "content": "x"}]},
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": {}},
    ],
)
def test_a_body_that_is_no_chat_is_refused(body: Any) -> None:
    with pytest.raises(InputDataError):
        request_of("acme", body)


def test_an_answer_has_the_shape_of_a_completion_or_of_its_one_chunk() -> None:
    heard = Heard(finish="stop", usage={"prompt_tokens": 3})
    text, kind = chat_body({"model": "m"}, "hi \ud83d", heard)
    whole = json.loads(text)
    assert (kind, text.isascii()) == ("application/json", True)
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "hi \ud83d"}
    assert (whole["object"], whole["usage"]) == ("chat.completion", {"prompt_tokens": 3})
    events, kind = chat_body({"model": "m", "stream": True}, "hi", Heard())
    assert (kind, events.splitlines()[2]) == ("text/event-stream", "data: [DONE]")
    chunk = json.loads(events.splitlines()[0].removeprefix("data: "))
    assert chunk["choices"][0]["delta"]["content"] == "hi"
    assert chunk["object"] == "chat.completion.chunk"
    assert whole["id"] != chunk["id"]


@pytest.mark.parametrize(
    ("more", "served", "kept"),
    [
        ({}, True, True),
        ({"temperature": 0, "stream": True, "n": 1, "logprobs": False, "tools": []}, True, True),
        ({"tools": [{"type": "function"}], "tool_choice": "auto"}, True, False),
        ({"n": 2}, False, False),
        ({"n": "1"}, False, False),
        ({"logprobs": True}, False, False),
        ({"functions": [{"name": "f"}]}, False, False),
        ({"modalities": ["audio"]}, False, False),
    ],
)
def test_which_answers_are_one_text(more: dict[str, Any], served: bool, kept: bool) -> None:
    body = {"model": "m", "messages": [], **more}
    assert (can_serve(body), can_keep(body)) == (served, kept)
