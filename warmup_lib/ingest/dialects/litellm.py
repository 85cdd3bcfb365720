"""Rows of LiteLLM's `LiteLLM_SpendLogs` table, exported as JSON lines or Parquet.

The request is in `proxy_server_request` (the body as the client sent it) or in `messages`,
depending on LiteLLM's version and the call. JSON columns come as objects or as JSON text,
depending on how they were exported. Times without zone are UTC: so LiteLLM writes them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from warmup_lib.bypass import truthy
from warmup_lib.ingest import fields, marks
from warmup_lib.ingest.logrow import LogRow
from warmup_lib.ingest.outcome import Reason, Rejected
from warmup_lib.ingest.redact import dump
from warmup_lib.ingest.times import Clock
from warmup_lib.keys import SAMPLING_DEFAULTS
from warmup_lib.messages import Conversation, split, text_of

_CUT = "litellm_truncated"
_WITHHELD = "redacted-by-litellm"
_HIT_SUFFIX = re.compile(r"_cache_hit\d+(?:\.\d+)?$", re.ASCII)
_HEALTH_ACCOUNT = "litellm-internal-health-check"
_HEALTH_NAMES = frozenset({_HEALTH_ACCOUNT, hashlib.sha256(_HEALTH_ACCOUNT.encode()).hexdigest()})
_TALKS = frozenset({"completion", "text_completion", "responses", "anthropic_messages", ""})
_PARAMS = frozenset({*SAMPLING_DEFAULTS, "cache_salt", "priority", "stream"})
_READ = frozenset(
    {
        *_PARAMS, "cache", "input", "instructions", "litellm_metadata", "max_completion_tokens",
        "max_output_tokens", "messages", "metadata", "model", "prompt", "system", "tools",
    }
)  # fmt: skip
_KEPT = (
    "agent_id", "api_base", "cache_key", "call_type", "custom_llm_provider", "end_user",
    "litellm_call_id", "model_id", "request_tags", "spend", "user",
)  # fmt: skip
_COLUMNS = frozenset(
    {
        *_KEPT, "api_key", "billing_agent_id", "cache_hit", "completionStartTime",
        "completion_tokens", "created_at", "endTime", "mcp_namespaced_tool_name", "messages",
        "metadata", "model", "model_group", "organization_id", "prompt_tokens",
        "proxy_server_request", "request_duration_ms", "request_id", "requester_ip_address",
        "response", "session_id", "startTime", "status", "team_id", "total_tokens", "updated_at",
    }
)  # fmt: skip


class LiteLLM:
    """LiteLLM SpendLogs."""

    name = "litellm"
    columns = _COLUMNS

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Return whether the row has the columns that every SpendLogs row has."""
        return all(name in row for name in ("request_id", "call_type", "startTime", "endTime"))

    def parse(self, row: Mapping[str, Any], clock: Clock) -> LogRow:
        """Return the request of a SpendLogs row."""
        request_id = fields.required_text(row, "request_id")
        started = clock.read(row.get("startTime"), "startTime", UTC)
        metadata = _object(row, "metadata")
        body, sent = _request(row)
        talk = _conversation(row, body)
        params = _params(body)
        found = _headers(metadata, body, sent)
        hit = truthy(row.get("cache_hit")) or bool(_HIT_SUFFIX.search(request_id))
        cache_control = found.get("cache-control")
        names = _names(row, metadata)
        return LogRow(
            request_id=request_id,
            ts=started,
            tenant=_tenant(row, metadata),
            model=_model(row, body),
            prompt=talk.prompt,
            system_prompt=talk.system_prompt,
            history=talk.history,
            tools=fields.items(body, "tools"),
            session_id=fields.text(row, "session_id"),
            params=params,
            cache_control=cache_control if isinstance(cache_control, str) else None,
            response=_answer(_json(row, "response")),
            status=_status(row, metadata),
            prompt_tokens=fields.whole(row, "prompt_tokens"),
            completion_tokens=fields.whole(row, "completion_tokens"),
            cached_tokens=_cached_tokens(metadata),
            **_durations(row, started, clock)._asdict(),
            served_from="responses" if hit else None,
            warmup=marks.is_warmup((request_id, fields.text(row, "litellm_call_id")), found),
            health=bool(_HEALTH_NAMES & names)
            or marks.is_health(
                talk.prompt,
                params.get("max_tokens"),
                metadata.get("user_api_key_request_route"),
                metadata.get("user_agent"),
            ),
            cache_hit=hit,
            bypass=marks.goes_round(cache_control, body, pragma=found.get("pragma"))
            or _cache_setting(body),
            incomplete=_is_cut(row),
            extra=_extra(row, body),
        )


def _json(row: Mapping[str, Any], name: str) -> Any:
    """Return a JSON column, which may come as JSON text; None when empty."""
    value = row.get(name)
    for _ in range(2):  # some exports encode what is JSON text already
        if isinstance(value, str) and value[:1] in ("{", "[", '"'):
            try:
                value = orjson.loads(value)
            except orjson.JSONDecodeError:
                raise Rejected(Reason.INVALID_JSON, name) from None
    return value or None


def _object(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = _json(row, name)
    if value is not None and not isinstance(value, dict):
        raise Rejected(Reason.WRONG_TYPE, name)
    return value or {}


def _request(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the request's body and its headers; LiteLLM stores the body alone, or both."""
    whole = _object(row, "proxy_server_request")
    body = whole.get("body")
    if not isinstance(body, dict):
        return whole, {}
    sent = whole.get("headers")
    return body, sent if isinstance(sent, dict) else {}


def _conversation(row: Mapping[str, Any], body: Mapping[str, Any]) -> Conversation:
    call_type = row.get("call_type") or ""
    if not isinstance(call_type, str):
        raise Rejected(Reason.WRONG_TYPE, "call_type")
    if call_type not in _TALKS and call_type.removeprefix("a") not in _TALKS:
        raise Rejected(Reason.UNSUPPORTED_CALL, "call_type")
    field, said = _said(row, body)
    if said is None or said == _WITHHELD:
        raise Rejected(Reason.PROMPT_NOT_LOGGED, field)
    system = body.get("instructions") or body.get("system")
    if isinstance(system, list):
        system = text_of({"content": system})
    if isinstance(said, str):
        said = [{"role": "user", "content": said}]
    if not isinstance(said, list):
        raise Rejected(Reason.BAD_MESSAGES, field)
    talk = split(said, system_prompt=system if isinstance(system, str) else None, field=field)
    if talk.prompt == _WITHHELD:
        raise Rejected(Reason.PROMPT_NOT_LOGGED, field)
    return talk


def _said(row: Mapping[str, Any], body: Mapping[str, Any]) -> tuple[str, Any]:
    for name in ("messages", "input", "prompt"):
        if body.get(name):
            return "proxy_server_request", body[name]
    return "messages", _json(row, "messages")


def _params(body: Mapping[str, Any]) -> dict[str, Any]:
    params = {k: v for k, v in body.items() if k in _PARAMS and v is not None}
    for newer in ("max_completion_tokens", "max_output_tokens"):
        if body.get(newer) is not None:
            params.setdefault("max_tokens", body[newer])
    return params


def _headers(
    metadata: Mapping[str, Any], body: Mapping[str, Any], sent: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all that a client may have said of its request, headers last."""
    own = body.get("metadata")
    own = own if isinstance(own, dict) else {}
    return marks.headers(
        own,
        metadata.get("spend_logs_metadata"),
        own.get("headers"),
        metadata.get("requester_custom_headers"),
        sent,
    )


def _names(row: Mapping[str, Any], metadata: Mapping[str, Any]) -> set[str]:
    """Return the accounts and tags that a row goes by."""
    tags = _json(row, "request_tags")
    found = [*(tags if isinstance(tags, list) else []), row.get("team_id"), row.get("api_key")]
    found += [metadata.get("user_api_key"), metadata.get("user_api_key_alias")]
    return {name for name in found if isinstance(name, str)}


def _tenant(row: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    for place, name in (
        (row, "team_id"),
        (metadata, "user_api_key_team_id"),
        (row, "organization_id"),
        (metadata, "user_api_key_org_id"),
        (row, "api_key"),
        (metadata, "user_api_key"),
    ):
        if found := fields.text(place, name):
            return found
    raise Rejected(Reason.MISSING_FIELD, "team_id")


def _model(row: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Return the name that the client asked for: the provider's name is the router's choice."""
    named = fields.text(row, "model_group") or fields.text(body, "model")
    return named or fields.required_text(row, "model")


def _status(row: Mapping[str, Any], metadata: Mapping[str, Any]) -> int | None:
    said = fields.text(row, "status") or metadata.get("status")
    if said == "success":
        return 200
    if said != "failure":
        return None
    error = metadata.get("error_information")
    code = str(error.get("error_code")) if isinstance(error, dict) else ""
    return int(code) if re.fullmatch(r"[1-5]\d\d", code, re.ASCII) else 500


def _cached_tokens(metadata: Mapping[str, Any]) -> int | None:
    for name in ("additional_usage_values", "usage_object"):
        usage = metadata.get(name)
        if not isinstance(usage, dict):
            continue
        details = usage.get("prompt_tokens_details")
        for place, key in ((usage, "cache_read_input_tokens"), (details, "cached_tokens")):
            if isinstance(place, dict) and place.get(key) is not None:
                return fields.whole(place, key)
    return None


class _Durations(NamedTuple):
    ttft_ms: float | None
    latency_ms: float | None


def _durations(row: Mapping[str, Any], started: datetime, clock: Clock) -> _Durations:
    ended = clock.read(row["endTime"], "endTime", UTC) if row.get("endTime") else None
    latency = fields.number(row, "request_duration_ms")
    if latency is None and ended is not None and ended >= started:
        latency = (ended - started).total_seconds() * 1000
    first = row.get("completionStartTime")
    ttft = None
    if first:
        at = clock.read(first, "completionStartTime", UTC)
        # An answer that was not streamed has endTime here, which says nothing of its first token.
        if at >= started and at != ended:
            ttft = (at - started).total_seconds() * 1000
    return _Durations(ttft, latency)


def _cache_setting(body: Mapping[str, Any]) -> bool:
    """Return whether the body's own `cache` setting goes round LiteLLM's cache."""
    cache = body.get("cache")
    return isinstance(cache, dict) and any(
        truthy(cache.get(name)) for name in ("no-cache", "no-store")
    )


def _is_cut(row: Mapping[str, Any]) -> bool:
    """Return whether LiteLLM cut a long text of the request before it stored it."""
    for name in ("proxy_server_request", "messages"):
        value = row.get(name)
        if value and _CUT in (value if isinstance(value, str) else dump(value).decode()):
            return True
    return False


def _answer(response: Any) -> str | None:
    """Return the answer's text; None when there is none or LiteLLM cut or withheld it."""
    text = response if isinstance(response, str) else None
    if isinstance(response, dict):
        text = _choice(response) or _output(response)
    return text if text and _CUT not in text and text != _WITHHELD else None


def _choice(response: Mapping[str, Any]) -> str | None:
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        return None
    message = first.get("message")
    if not isinstance(message, dict):
        message = {"content": first.get("text")}
    text = message.get("content")
    # The text beside a tool call is not the whole answer.
    return text if isinstance(text, str) and not message.get("tool_calls") else None


def _output(response: Mapping[str, Any]) -> str | None:
    """Return the text of an answer in the Responses or the Anthropic form."""
    output = response.get("output")
    messages = output if isinstance(output, list) else [response]
    texts = [
        text_of(m)
        for m in messages
        if isinstance(m, dict) and isinstance(m.get("content"), list)
        if all(isinstance(part, str | dict) for part in m["content"])
    ]
    return "\n".join(filter(None, texts)) or None


def _extra(row: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in row.items() if k in _KEPT or k not in _COLUMNS}
    kept["request_tags"] = _json(row, "request_tags")
    kept["body"] = {k: v for k, v in body.items() if k not in _READ}
    return {k: v for k, v in kept.items() if v not in (None, "", {})}
