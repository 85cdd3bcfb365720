from __future__ import annotations

import re
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from warmup_lib.config import Config
from warmup_lib.ingest.dialects.jsonl import FIELDS, Jsonl
from warmup_lib.ingest.outcome import Kept, Raw, Reason
from warmup_lib.ingest.prepare import Preparer
from warmup_lib.ingest.times import Clock
from warmup_lib.keys import Keys

DOCS = Path(__file__).parents[3] / "docs" / "requests.md"
AS_OF = datetime(2026, 3, 15, 12, tzinfo=UTC)
SCHEMA = orjson.loads(files("warmup_lib.ingest").joinpath("request.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA)

GOOD = {
    "request_id": "r",
    "ts": "2026-03-14T10:00:00Z",
    "tenant": "t",
    "model": "m",
    "prompt": "p",
}


PREPARER = Preparer(Jsonl(), "source", Clock(UTC, AS_OF), Config(), Keys(b"a secret of the tests"))


def verdict(row: dict[str, Any]) -> Reason | None:
    found = PREPARER.prepare(Raw(1, 0, 0, row))
    return None if isinstance(found, Kept) else found.reason


def test_the_schema_is_one_and_names_the_parsers_fields() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["properties"]) == FIELDS


def test_the_documentation_names_every_field_with_its_meaning() -> None:
    table = dict(re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", DOCS.read_text("utf-8"), re.MULTILINE))
    assert table == {k: v["description"] for k, v in SCHEMA["properties"].items()}


SCALAR = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text("a* \n5")
)
VALUE = st.one_of(
    SCALAR,
    st.lists(SCALAR, max_size=2),
    st.dictionaries(st.sampled_from(["role", "content", "x"]), SCALAR, max_size=3),
    st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "system"]), "content": SCALAR})
    ),
    st.sampled_from(["2026-03-14 10:00", "1773455400", 1773455400.5, 2**53 + 1, 5.0, -1, 1000]),
)
ROW = st.dictionaries(st.sampled_from(sorted(FIELDS)), VALUE, max_size=3).map(lambda d: GOOD | d)

BEYOND_SCHEMA = {
    Reason.BAD_TIMESTAMP,  # such as the 30th of February
    Reason.FUTURE_TIMESTAMP,
    Reason.EMPTY_PROMPT,  # a message list without user text
    Reason.OUT_OF_RANGE,  # infinity, which no JSON text can hold
}


@settings(max_examples=600, deadline=None)
@given(ROW)
def test_schema_and_parser_agree(row: dict[str, Any]) -> None:
    said = verdict(row)
    if said is None:
        VALIDATOR.validate(row)
    elif said not in BEYOND_SCHEMA:
        assert not VALIDATOR.is_valid(row), said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ts": None}, Reason.MISSING_FIELD),
        ({"tenant": ""}, Reason.MISSING_FIELD),
        ({"prompt": None}, Reason.MISSING_FIELD),
        ({"prompt": "\n"}, Reason.EMPTY_PROMPT),
        ({"prompt": ""}, Reason.EMPTY_PROMPT),
        ({"prompt": None, "messages": []}, Reason.MISSING_FIELD),
        ({"model": 5}, Reason.WRONG_TYPE),
        ({"tenant": "*"}, Reason.BAD_TENANT),
        ({"params": [1]}, Reason.WRONG_TYPE),
        ({"status": True}, Reason.WRONG_TYPE),
        ({"status": 1000}, Reason.OUT_OF_RANGE),
        ({"prompt_tokens": 1.5}, Reason.WRONG_TYPE),
        ({"prompt_tokens": 2**53 + 1}, Reason.OUT_OF_RANGE),
        ({"ttft_ms": -0.1}, Reason.OUT_OF_RANGE),
        ({"chunk_ids": [1]}, Reason.WRONG_TYPE),
        ({"skip_cache": {}}, Reason.WRONG_TYPE),
        ({"extra": "x"}, Reason.WRONG_TYPE),
    ],
)
def test_what_is_refused_and_why(change: dict[str, Any], reason: Reason) -> None:
    row = GOOD | change
    assert verdict(row) is reason
    assert not VALIDATOR.is_valid(row)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.text("ab c", min_size=1).filter(str.strip)
            for name in (
                "system_prompt", "model_revision", "adapter", "user_segment", "session_id",
                "locale", "intent", "ab_arm", "response", "served_from",
            )
        }
        | {
            "prompt_tokens": st.integers(0, 2**53),
            "status": st.integers(0, 999),
            "ttft_ms": st.floats(0, 1e9),
            "ab_score": st.floats(-1e9, 1e9),
            "params": st.dictionaries(st.sampled_from(["temperature", "n"]), st.integers()),
            "chunk_ids": st.lists(st.text("abc"), min_size=1),
            "tools": st.lists(st.dictionaries(st.text("ab"), st.integers()), min_size=1),
            "extra": st.dictionaries(st.text("xy", min_size=1), st.integers()),
        },
    )
)  # fmt: skip
def test_known_fields_come_through_as_they_are(fields: dict[str, Any]) -> None:
    row = Jsonl().parse(GOOD | fields, Clock(UTC, AS_OF))
    assert {name: getattr(row, name) for name in fields} == fields


def test_unknown_fields_are_kept() -> None:
    row = Jsonl().parse(GOOD | {"region": "eu", "gone": None, "extra": {"a": 1}}, Clock(UTC, AS_OF))
    assert row.extra == {"a": 1, "region": "eu"}


def test_messages_stand_for_both_prompts() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    row = Jsonl().parse(GOOD | {"prompt": None, "messages": messages}, Clock(UTC, AS_OF))
    assert (row.system_prompt, row.prompt, row.history) == ("Be brief.", "three", messages[1:3])
