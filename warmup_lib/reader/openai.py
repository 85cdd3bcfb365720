"""OpenAI-style bodies: from a chat request to what its keys are made of, and back to an answer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from warmup_lib.errors import InputDataError
from warmup_lib.keys import Request
from warmup_lib.messages import split

_OWN = frozenset({"messages", "model", "tools"})


def request_of(
    tenant: str,
    body: Mapping[str, Any],
    *,
    adapter: str | None = None,
    model_revision: str | None = None,
    dimensions: Mapping[str, Any] | None = None,
) -> Request:
    """Return the request of a chat body, its messages taken apart as the log's are.

    Args:
        tenant: Who asks.
        body: Model, messages, tools; what else it holds are parameters.
        adapter: The adapter, by its name in the log.
        model_revision: Revision of the model, where the log has one.
        dimensions: Further fields by the names that the settings' `dimensions` have.

    Raises:
        InputDataError: It is no object, has no model, or its messages can't be taken apart.
    """
    if not isinstance(body, Mapping):
        raise InputDataError("the body must be a JSON object")
    model, messages, tools = body.get("model"), body.get("messages"), body.get("tools")
    if not isinstance(model, str) or not model.strip():
        raise InputDataError("the body must name a model")
    if not isinstance(messages, list):
        raise InputDataError("the body must hold a list of messages")
    if tools is not None and not isinstance(tools, list):
        raise InputDataError("the tools of a request must be a list")
    talk = split(messages)
    return Request(
        tenant,
        model,
        talk.prompt,
        talk.system_prompt,
        talk.history,
        tools,
        model_revision,
        adapter,
        {name: value for name, value in body.items() if name not in _OWN},
        dimensions or {},
    )


def chat_body(
    model: str,
    answer: str,
    *,
    finish: str | None = "stop",
    usage: Mapping[str, Any] | None = None,
    chunk: bool = False,
) -> dict[str, Any]:
    """Return an answer as the body of a chat completion, or as the one chunk of a streamed one.

    Args:
        model: Model as asked for.
        answer: The text.
        finish: Why it ended.
        usage: Tokens as the host counted them; none were for a stored answer.
        chunk: As a chunk.
    """
    said = {"role": "assistant", "content": answer}
    choice = {"index": 0, "delta" if chunk else "message": said, "finish_reason": finish}
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion.chunk" if chunk else "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": dict(usage or {}),
    }
