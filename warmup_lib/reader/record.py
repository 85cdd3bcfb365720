"""What a gateway writes down of a request: one canonical row of the request log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from warmup_lib.bypass import Headers, joined
from warmup_lib.evidence import FIELD
from warmup_lib.keys import Request
from warmup_lib.reader.found import Found

_MARKS = ("pragma", "x-warmup")
"""Headers besides `cache-control` that ingest reads; no other one is written down."""


def log_row(
    request_id: str,
    at: datetime,
    request: Request,
    messages: Any,
    found: Found,
    *,
    headers: Headers,
    user_segment: str | None = None,
    asked: Mapping[str, Any] | None = None,
    usage: Mapping[str, Any] | None = None,
    **told: Any,
) -> dict[str, Any]:
    """Return a row for the format `jsonl`, as docs/requests.md describes it, ready for JSON.

    Args:
        request_id: An id that the gateway gave; a caller's own may come twice.
        at: When the request arrived, with its zone.
        request: The request.
        messages: Its messages as sent.
        found: What the reader gave.
        headers: Its headers, as the reader takes them, of which only those are kept that change how
            caches are used.
        user_segment: Segment of the user.
        asked: What the evidence says of the model host, by the fields of `Evidence`: `host`,
            `host_epoch`, `host_ready`, `adapter`, `salt`.
        usage: The host's `usage` object.
        told: Further fields of the row, such as `status`, `ttft_ms` and `latency_ms`.
    """
    counts, said = dict(usage or {}), joined(headers)
    row = {
        "request_id": request_id,
        "ts": at.isoformat(),
        "tenant": request.tenant,
        "model": request.model,
        "model_revision": request.model_revision,
        "adapter": request.adapter,
        "user_segment": user_segment,
        "messages": messages,
        "tools": request.tools,
        "params": dict(request.params),
        "cache_control": said.get("cache-control"),
        "headers": {name: said[name] for name in _MARKS if name in said},
        "response": found.answer,
        "prompt_tokens": counts.get("prompt_tokens"),
        "completion_tokens": counts.get("completion_tokens"),
        "cached_tokens": (counts.get("prompt_tokens_details") or {}).get("cached_tokens"),
        "served_from": found.layer,
        FIELD: replace(found.evidence, **asked or {}).to_dict(),
        **told,
    }
    return {name: value for name, value in row.items() if value not in (None, "", {}, [])}
