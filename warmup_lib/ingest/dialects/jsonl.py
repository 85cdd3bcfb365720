"""Canonical requests, one JSON object a line: the format that docs/requests.md publishes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warmup_lib.ingest import fields, marks
from warmup_lib.ingest.logrow import LogRow
from warmup_lib.ingest.outcome import Reason, Rejected
from warmup_lib.ingest.times import Clock
from warmup_lib.messages import Conversation, split

REQUIRED = ("request_id", "ts", "tenant", "model")
"""With `prompt`, or `messages` in its place."""

FIELDS = frozenset(
    {
        *REQUIRED,
        "prompt",
        "system_prompt",
        "messages",
        "tools",
        "model_revision",
        "adapter",
        "user_segment",
        "session_id",
        "locale",
        "intent",
        "ab_arm",
        "ab_score",
        "params",
        "cache_control",
        "skip_cache",
        "response",
        "status",
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "ttft_ms",
        "latency_ms",
        "served_from",
        "chunk_ids",
        "warmup",
        "extra",
    }
)
"""All fields with a meaning, as request.schema.json publishes them."""


class Jsonl:
    """The canonical format."""

    name = "jsonl"
    columns = FIELDS

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Return whether the row has the required fields."""
        return all(name in row for name in REQUIRED) and ("prompt" in row or "messages" in row)

    def parse(self, row: Mapping[str, Any], clock: Clock) -> LogRow:
        """Return the request of a canonical row."""
        request_id = fields.required_text(row, "request_id")
        at = clock.read(row.get("ts"), "ts")
        talk = _conversation(row)
        params = fields.mapping(row, "params")
        unknown = {k: v for k, v in row.items() if k not in FIELDS and v is not None}
        extra = {**fields.mapping(row, "extra"), **unknown}
        found = marks.headers(extra.get("metadata"), extra.get("headers"))
        answered = marks.headers(extra.get("response_headers"))
        cache_control = fields.text(row, "cache_control") or found.get("cache-control")
        served_from = fields.text(row, "served_from")
        return LogRow(
            request_id=request_id,
            ts=at,
            tenant=fields.required_text(row, "tenant"),
            model=fields.required_text(row, "model"),
            prompt=talk.prompt,
            system_prompt=talk.system_prompt,
            history=talk.history,
            tools=fields.items(row, "tools"),
            model_revision=fields.text(row, "model_revision"),
            adapter=fields.text(row, "adapter"),
            user_segment=fields.text(row, "user_segment"),
            session_id=fields.text(row, "session_id"),
            locale=fields.text(row, "locale"),
            intent=fields.text(row, "intent"),
            ab_arm=fields.text(row, "ab_arm"),
            ab_score=fields.number(row, "ab_score", negative=True),
            params=params,
            cache_control=marks.cache_control(cache_control, answered.get("cache-control")),
            response=fields.text(row, "response"),
            status=fields.whole(row, "status", largest=999),
            prompt_tokens=fields.whole(row, "prompt_tokens"),
            completion_tokens=fields.whole(row, "completion_tokens"),
            cached_tokens=fields.whole(row, "cached_tokens"),
            ttft_ms=fields.number(row, "ttft_ms"),
            latency_ms=fields.number(row, "latency_ms"),
            served_from=served_from,
            chunk_ids=fields.texts(row, "chunk_ids"),
            warmup=marks.is_warmup((request_id,), found, _flag(row, "warmup")),
            health=marks.is_health(
                talk.prompt,
                params.get("max_tokens"),
                extra.get("route"),
                found.get("user-agent", extra.get("user_agent")),
            ),
            cache_hit=served_from is not None,
            bypass=marks.goes_round(
                cache_control,
                {"skip_cache": _flag(row, "skip_cache")},
                params,
                extra,
                pragma=found.get("pragma"),
            ),
            extra=extra,
        )


def _conversation(row: Mapping[str, Any]) -> Conversation:
    system_prompt = fields.text(row, "system_prompt")
    prompt = fields.text(row, "prompt")
    messages = fields.items(row, "messages")
    if messages is not None:
        return split(messages, system_prompt=system_prompt, prompt=prompt)
    if prompt is None and row.get("prompt") is None:
        raise Rejected(Reason.MISSING_FIELD, "prompt")
    if prompt is None or prompt.isspace():
        raise Rejected(Reason.EMPTY_PROMPT, "prompt")
    return Conversation(system_prompt, prompt, [])


def _flag(row: Mapping[str, Any], name: str) -> Any:
    value = row.get(name)
    if isinstance(value, list | dict):
        raise Rejected(Reason.WRONG_TYPE, name)
    return value
