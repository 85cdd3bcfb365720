"""OpenAI-style bodies: from a chat request to what its keys are made of, and back to an answer."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warmup_lib.errors import InputDataError
from warmup_lib.keys import Request
from warmup_lib.messages import split

_OWN = frozenset({"messages", "model", "tools"})
_CALLS = frozenset({"tools", "tool_choice", "parallel_tool_calls"})
_TEXT = _CALLS.union(
    ("messages", "model", "stream", "stream_options", "user", "metadata", "seed", "stop"),
    ("temperature", "top_p", "top_k", "min_p", "max_tokens", "max_completion_tokens"),
    ("presence_penalty", "frequency_penalty", "repetition_penalty", "response_format"),
    ("skip_cache", "disable_cache", "cache_enabled"),
)
"""What a body may hold for its answer to be one text. Of what else there is nobody knows: choices,
log probabilities and sound are no text."""


def body_of(raw: bytes) -> Any:
    """Return what a request's body holds.

    Raises:
        InputDataError: It is no JSON that a host takes: nor are `NaN`, or half a surrogate pair.
    """
    try:
        found = json.loads(raw, parse_constant=int)  # no whole number is called so, and it raises
        if b"\\ud" in raw.lower():
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except (ValueError, RecursionError):
        raise InputDataError("the body is no JSON") from None


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


def can_serve(body: Mapping[str, Any]) -> bool:
    """Return whether one stored text can be the answer to a chat body.

    Args:
        body: The body; fields that are absent, null or false, and one choice, ask for nothing more.
    """
    return _asked(body) <= _TEXT


def can_keep(body: Mapping[str, Any]) -> bool:
    """Return whether its answer can be stored as a text: not one that may call a tool.

    Args:
        body: As in `can_serve`.
    """
    return _asked(body) <= _TEXT - _CALLS


def _asked(body: Mapping[str, Any]) -> set[str]:
    return {
        name
        for name, value in body.items()
        if not (value is None or value is False or value == [] or (name == "n" and value == 1))
    }


@dataclass
class Heard:
    """A streamed answer so far.

    Attributes:
        text: The text.
        finish: Why it ended; None: it has not.
        usage: Tokens as the host counted them.
    """

    text: str = ""
    finish: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)

    def take(self, event: Any) -> None:
        """Take in one event of the stream; null says nothing.

        Raises:
            ValueError: It is none of one answer's.
        """
        if event is None:
            return
        try:
            for choice in event.get("choices") or ():
                self.finish = choice.get("finish_reason") or self.finish
                self.text += (choice.get("delta") or {}).get("content") or ""
            self.usage = dict(event.get("usage") or self.usage)
        except (TypeError, AttributeError) as error:
            raise ValueError("an event of another form") from error


def chat_body(asked: Mapping[str, Any], answer: str, heard: Heard) -> tuple[str, str]:
    """Return an answer as the body of a chat completion, and its content type.

    It is ASCII, for a text can hold half of a surrogate pair.

    Args:
        asked: The body that asked: its model, and whether it wants a stream, of one chunk then.
        answer: The text.
        heard: Why it ended, and the tokens that the host counted; none were for a stored answer.
    """
    stream = bool(asked.get("stream"))
    said = {"role": "assistant", "content": answer}
    choice = {"index": 0, "delta" if stream else "message": said, "finish_reason": heard.finish}
    whole = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion.chunk" if stream else "chat.completion",
        "created": int(time.time()),
        "model": asked["model"],
        "choices": [choice],
        "usage": dict(heard.usage),
    }
    if stream:
        return f"data: {json.dumps(whole)}\n\ndata: [DONE]\n\n", "text/event-stream"
    return json.dumps(whole), "application/json"
