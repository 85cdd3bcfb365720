from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warmup_lib.ingest.dialects.litellm import LiteLLM
from warmup_lib.ingest.logrow import LogRow
from warmup_lib.ingest.outcome import Reason, Rejected
from warmup_lib.ingest.reader import read_requests
from warmup_lib.ingest.times import Clock

AS_OF = datetime(2026, 3, 15, 12, tzinfo=UTC)


def spend_log(number: int = 1, **columns: Any) -> dict[str, Any]:
    """A row as `SELECT row_to_json(t) FROM "LiteLLM_SpendLogs" t` prints it."""
    body = {
        "model": "support-chat",
        "messages": [
            {"role": "system", "content": "You answer questions about cards."},
            {"role": "user", "content": f"Where is my card number {number}?"},
        ],
        "temperature": 0.2,
        "max_completion_tokens": 96,
        "stream": True,
        "user": "u-77",
        "metadata": {"app": "web"},
    }
    answer = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": "It is on its way.",
                    "tool_calls": None,
                },
            }
        ],
        "usage": {"prompt_tokens": 412, "completion_tokens": 6, "total_tokens": 418},
    }
    metadata = {
        "user_api_key": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b",
        "user_api_key_alias": "web",
        "user_api_key_team_id": "team-cards",
        "user_api_key_org_id": None,
        "user_api_key_user_id": "default_user_id",
        "status": None,
        "user_agent": "OpenAI/Python 1.99.1",
        "requester_ip_address": "10.0.0.7",
        "additional_usage_values": {
            "prompt_tokens_details": {"cached_tokens": 384, "audio_tokens": None},
            "cache_read_input_tokens": 384,
        },
        "usage_object": {"prompt_tokens": 412, "completion_tokens": 6},
    }
    row = {
        "request_id": f"chatcmpl-{number}",
        "call_type": "acompletion",
        "api_key": metadata["user_api_key"],
        "spend": 0.00021,
        "total_tokens": 418,
        "prompt_tokens": 412,
        "completion_tokens": 6,
        "startTime": "2026-03-14T02:30:00.125",
        "endTime": "2026-03-14T02:30:01.625",
        "request_duration_ms": 1500,
        "completionStartTime": "2026-03-14T02:30:00.375",
        "model": "hosted_vllm/smollm2-135m",
        "model_id": "5c1f",
        "model_group": "support-chat",
        "custom_llm_provider": "hosted_vllm",
        "api_base": "http://vllm:8000/v1",
        "user": "default_user_id",
        "metadata": metadata,
        "cache_hit": "False",
        "cache_key": "Cache OFF",
        "request_tags": ["User-Agent: OpenAI", "User-Agent: OpenAI/Python 1.99.1"],
        "team_id": "team-cards",
        "organization_id": None,
        "end_user": "jane.doe@mail.test",
        "requester_ip_address": "10.0.0.7",
        "messages": {},
        "response": answer,
        "session_id": "af9b9e0f",
        "status": "success",
        "mcp_namespaced_tool_name": None,
        "agent_id": None,
        "proxy_server_request": body,
        "litellm_call_id": "6cbd",
        "created_at": "2026-03-14T02:30:05.1",
        "updated_at": "2026-03-14T02:30:05.1",
    }
    return {**row, **columns}


def parse(**columns: Any) -> LogRow:
    return LiteLLM().parse(spend_log(**columns), Clock(UTC, AS_OF))


def body(**changes: Any) -> dict[str, Any]:
    return {**spend_log()["proxy_server_request"], **changes}


def metadata(**changes: Any) -> dict[str, Any]:
    return {**spend_log()["metadata"], **changes}


def test_a_row_as_litellm_writes_it() -> None:
    row = parse()
    assert row.request_id == "chatcmpl-1"
    assert row.ts == datetime(2026, 3, 14, 2, 30, 0, 125_000, tzinfo=UTC)
    assert (row.tenant, row.model) == ("team-cards", "support-chat")
    assert row.prompt == "Where is my card number 1?"
    assert row.system_prompt == "You answer questions about cards."
    assert row.history == []
    assert row.params == {"temperature": 0.2, "max_tokens": 96, "stream": True}
    assert row.response == "It is on its way."
    assert (row.status, row.session_id) == (200, "af9b9e0f")
    assert (row.prompt_tokens, row.completion_tokens, row.cached_tokens) == (412, 6, 384)
    assert (row.ttft_ms, row.latency_ms) == (250.0, 1500.0)
    assert not any((row.warmup, row.health, row.cache_hit, row.bypass, row.incomplete))
    assert row.served_from is None
    assert row.extra["end_user"] == "jane.doe@mail.test"
    assert row.extra["body"] == {"user": "u-77"}
    assert "10.0.0.7" not in json.dumps(row.extra)


def test_json_columns_as_text_or_as_objects_are_one() -> None:
    names = ("metadata", "proxy_server_request", "response", "messages", "request_tags")
    text = {name: json.dumps(spend_log()[name]) for name in names}
    twice = {name: json.dumps(value) for name, value in text.items()}
    assert parse(**text) == parse(**twice) == parse()


@pytest.mark.parametrize("times", ["text", "timestamp"])
def test_parquet_and_json_lines_give_the_same_requests(
    tmp_path: Path, write: Any, config: Any, keys: Any, times: str
) -> None:
    rows = [spend_log(n, cache_hit=str(n == 2)) for n in range(1, 4)]
    lines = write(tmp_path / "log.jsonl", *rows)
    names = ("metadata", "proxy_server_request", "response", "messages", "request_tags")
    flat = [{k: json.dumps(v) if k in names else v for k, v in row.items()} for row in rows]
    table = pa.Table.from_pylist(flat)
    if times == "timestamp":
        for name in ("startTime", "endTime", "completionStartTime"):
            at = table.column_names.index(name)
            stamps = pa.array(table[name].to_pylist()).cast(pa.timestamp("ms"))
            table = table.set_column(at, name, stamps)
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=2)
    want = read_requests([lines], "litellm", config, keys, AS_OF)
    for dialect in ("litellm", "auto"):
        found = read_requests([tmp_path / "log.parquet"], dialect, config, keys, AS_OF)
        same = [n for n in want.column_names if n not in ("source", "extra")]
        assert found.select(same).to_pylist() == want.select(same).to_pylist()
        extras = [[json.loads(e.as_py()) for e in t["extra"]] for t in (found, want)]
        assert extras[0] == extras[1]
    assert extras[0][0]["end_user"] == "<EMAIL>"


@pytest.mark.parametrize(
    ("columns", "tenant"),
    [
        ({}, "team-cards"),
        ({"team_id": None}, "team-cards"),  # the metadata has it too
        ({"team_id": "", "metadata": {}, "organization_id": "org-1"}, "org-1"),
        ({"team_id": None, "metadata": {"user_api_key_org_id": "org-2"}}, "org-2"),
        ({"team_id": None, "metadata": {}, "api_key": "ab12"}, "ab12"),
    ],
)
def test_the_tenant_is_the_team_else_the_organisation_else_the_key(
    columns: Any, tenant: str
) -> None:
    assert parse(**columns).tenant == tenant


@pytest.mark.parametrize(
    ("columns", "hit"),
    [
        ({"cache_hit": "True"}, True),
        ({"cache_hit": "False"}, False),
        ({"cache_hit": "None"}, False),
        ({"cache_hit": ""}, False),
        ({"request_id": "chatcmpl-1_cache_hit1773455400.125"}, True),
        ({"request_id": "my_cache_hits"}, False),
    ],
)
def test_cache_hits(columns: Any, hit: bool) -> None:
    row = parse(**columns)
    assert (row.cache_hit, row.served_from) == (hit, "responses" if hit else None)
    assert row.request_id == columns.get("request_id", "chatcmpl-1")


@pytest.mark.parametrize(
    ("columns", "mark"),
    [
        ({"metadata": metadata(requester_custom_headers={"x-warmup": "plan-1"})}, "warmup"),
        ({"metadata": metadata(spend_logs_metadata={"x-warmup": "plan-1"})}, "warmup"),
        ({"proxy_server_request": body(metadata={"x-warmup": "plan-1"})}, "warmup"),
        ({"proxy_server_request": {"body": body(), "headers": {"X-Warmup": "p"}}}, "warmup"),
        ({"litellm_call_id": "warmup-1"}, "warmup"),
        ({"metadata": metadata(requester_custom_headers={"Cache-Control": "no-cache"})}, "bypass"),
        ({"proxy_server_request": body(cache={"no-cache": True})}, "bypass"),
        ({"proxy_server_request": body(cache={"ttl": 60})}, None),
        ({"proxy_server_request": body(skip_cache=True)}, "bypass"),
        ({"request_tags": ["litellm-internal-health-check"]}, "health"),
        ({"request_tags": '["litellm-internal-health-check"]'}, "health"),
        (
            {"api_key": hashlib.sha256(b"litellm-internal-health-check").hexdigest()},
            "health",
        ),
        ({"metadata": metadata(user_agent="kube-probe/1.31")}, "health"),
    ],
)
def test_marks(columns: Any, mark: str | None) -> None:
    row = parse(**columns)
    assert [n for n in ("warmup", "bypass", "health") if getattr(row, n)] == [mark] * bool(mark)


@pytest.mark.parametrize(
    ("columns", "status"),
    [
        ({}, 200),
        ({"status": None}, None),
        ({"status": None, "metadata": metadata(status="failure")}, 500),
        (
            {"status": "failure", "metadata": {"error_information": {"error_code": "429"}}},
            429,
        ),
        ({"status": "failure", "metadata": {"error_information": {"error_code": ""}}}, 500),
    ],
)
def test_status(columns: Any, status: int | None) -> None:
    assert parse(**columns).status == status


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"additional_usage_values": {"cache_read_input_tokens": 7}}, 7),
        ({"additional_usage_values": {"prompt_tokens_details": {"cached_tokens": 8}}}, 8),
        ({"usage_object": {"prompt_tokens_details": {"cached_tokens": 9}}}, 9),
        ({"usage_object": {"cache_read_input_tokens": 0}}, 0),
        ({"additional_usage_values": {}, "usage_object": None}, None),
        ({}, None),
    ],
)
def test_cached_tokens_under_all_their_names(usage: Any, cached: int | None) -> None:
    assert parse(metadata=usage).cached_tokens == cached


def test_an_answer_that_was_not_streamed_has_no_first_token() -> None:
    row = parse(completionStartTime=spend_log()["endTime"], request_duration_ms=None)
    assert (row.ttft_ms, row.latency_ms) == (None, 1500.0)


@pytest.mark.parametrize(
    ("call_type", "sent", "expected"),
    [
        (
            "atext_completion",
            {"model": "m", "prompt": "Once upon", "max_tokens": 5},
            (None, "Once upon", [], {"max_tokens": 5}),
        ),
        (
            "aresponses",
            {"input": "hi", "instructions": "Be brief.", "max_output_tokens": 5},
            ("Be brief.", "hi", [], {"max_tokens": 5}),
        ),
        (
            "aresponses",
            {"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
            (None, "hi", [], {}),
        ),
        (
            "anthropic_messages",
            {
                "system": [{"type": "text", "text": "Be kind."}],
                "messages": [{"role": "user", "content": "hi"}],
            },
            ("Be kind.", "hi", [], {}),
        ),
    ],
)
def test_other_kinds_of_text_calls(call_type: str, sent: Any, expected: Any) -> None:
    row = parse(call_type=call_type, proxy_server_request=sent)
    assert (row.system_prompt, row.prompt, row.history, row.params) == expected


def test_messages_are_read_where_the_body_was_not_stored() -> None:
    messages = [{"role": "user", "content": "hi"}]
    row = parse(messages=messages, proxy_server_request={}, model_group="")
    assert (row.prompt, row.model, row.params) == ("hi", "hosted_vllm/smollm2-135m", {})


@pytest.mark.parametrize(
    ("columns", "reason", "field"),
    [
        ({"proxy_server_request": "{}"}, Reason.PROMPT_NOT_LOGGED, "messages"),
        ({"proxy_server_request": None, "messages": None}, Reason.PROMPT_NOT_LOGGED, "messages"),
        (
            {
                "proxy_server_request": {
                    "messages": [{"role": "user", "content": "redacted-by-litellm"}]
                }
            },
            Reason.PROMPT_NOT_LOGGED,
            "proxy_server_request",
        ),
        ({"call_type": "aembedding"}, Reason.UNSUPPORTED_CALL, "call_type"),
        ({"call_type": 5}, Reason.WRONG_TYPE, "call_type"),
        ({"metadata": "{broken"}, Reason.INVALID_JSON, "metadata"),
        ({"metadata": "[1]"}, Reason.WRONG_TYPE, "metadata"),
        ({"startTime": None}, Reason.MISSING_FIELD, "startTime"),
        ({"endTime": "soon"}, Reason.BAD_TIMESTAMP, "endTime"),
        ({"request_id": ""}, Reason.MISSING_FIELD, "request_id"),
        ({"team_id": "", "metadata": {}, "api_key": ""}, Reason.MISSING_FIELD, "team_id"),
        (
            {"proxy_server_request": {"messages": {"role": "user"}}},
            Reason.BAD_MESSAGES,
            "proxy_server_request",
        ),
    ],
)
def test_what_is_refused_and_why(columns: Any, reason: Reason, field: str) -> None:
    with pytest.raises(Rejected) as verdict:
        parse(**columns)
    assert (verdict.value.reason, verdict.value.field) == (reason, field)


def test_a_text_that_litellm_cut_is_demand_that_is_never_warmed(
    tmp_path: Path, write: Any, config: Any, keys: Any
) -> None:
    cut = "You answer ... (litellm_truncated skipped 900 chars. To increase ...) ... cards."
    messages = [{"role": "system", "content": cut}, {"role": "user", "content": "hi"}]
    assert parse(proxy_server_request=body(messages=messages)).incomplete
    answer = {"choices": [{"message": {"role": "assistant", "content": cut}}]}
    assert parse(response=answer).response is None
    file = write(tmp_path / "log", spend_log(proxy_server_request=body(messages=messages)))
    assert read_requests([file], "litellm", config, keys, AS_OF)["redacted"].to_pylist() == [True]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({}, None),
        ("{}", None),
        ("plain", "plain"),
        ({"choices": [{"text": "a tale"}]}, "a tale"),
        ({"choices": []}, None),
        ({"choices": [{"message": {"content": None, "tool_calls": [{"id": "1"}]}}]}, None),
        ({"choices": [{"message": {"content": "wait", "tool_calls": [{"id": "1"}]}}]}, None),
        (
            {
                "output": [
                    {"type": "reasoning"},
                    {"content": [{"type": "output_text", "text": "x"}]},
                ]
            },
            "x",
        ),
        ({"content": [{"type": "text", "text": "y"}]}, "y"),
        ({"text": "redacted-by-litellm"}, None),
    ],
)
def test_answers(answer: Any, text: str | None) -> None:
    assert parse(response=answer).response == text


def test_a_note_tells_how_to_have_prompts_logged(tmp_path: Path, write: Any, ingest: Any) -> None:
    file = write(tmp_path / "log", spend_log(1), spend_log(2, proxy_server_request={}))
    report = ingest(file, dialect="auto")
    assert report.facts["quarantine"] == {"prompt_not_logged": 1}
    assert report.notes == (
        "1 rows have no prompt: the gateway does not log it "
        "(LiteLLM: set `store_prompts_in_spend_logs: true`)",
    )
