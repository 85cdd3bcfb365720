"""What goes to a model host and what comes back: the bodies of chat requests and answers."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warmup_lib.errors import InputDataError, WarmupError

Message = Mapping[str, Any]

# Two messages with no token in common at their start: what a prompt shares with both is its head.
WARM_TEXT = "Hello."
PROBE_TEXT = "Which of these is next?"

OTHER_SHAPE = "its answer is not of the OpenAI shape"
_MOST_TOKENS = 2**31


class RequestRefused(WarmupError):
    """A host answered one request with an error that concerns this request alone.

    Args:
        status: HTTP status.
        reason: The kind of error, without the server's text, which can quote the request.
    """

    exit_code = 1

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP {status}: {reason}")
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class Head:
    """What the requests of one kind begin with: the system prompt and the tools.

    Attributes:
        model: Model name as in the log.
        system_prompt: The system prompt as sent; None: there is none.
        tools: Tool definitions, JSON with its keys in the order in which they were sent.
        adapter: LoRA adapter.
    """

    model: str
    system_prompt: str | None
    tools: str | None = None
    adapter: str | None = None

    def messages(self, user: str) -> list[Message]:
        """Return the head with one user message after it."""
        system = [] if self.system_prompt is None else [_message("system", self.system_prompt)]
        return [*system, _message("user", user)]

    def tool_list(self) -> list[Any] | None:
        """Return the tools as sent.

        Raises:
            InputDataError: They are no JSON list.
        """
        if not self.tools:
            return None
        try:
            tools = json.loads(self.tools)
        except ValueError:
            tools = None
        if not isinstance(tools, list):
            raise InputDataError("the tools of this head are no JSON list")
        return tools or None


@dataclass(frozen=True)
class Chat:
    """One chat request.

    Attributes:
        head: Model, adapter, system prompt and tools.
        user: The user message.
        max_tokens: Longest answer, in tokens.
        salt: `cache_salt`; None: the request carries none.
        low_priority: Let all other traffic go first, where the host knows priorities.
        stream: Measure the time to the first token.
        params: Further sampling parameters.
        headers: Further headers.
    """

    head: Head
    user: str
    max_tokens: int = 1
    salt: str | None = None
    low_priority: bool = True
    stream: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, model: str, extra: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON body.

        Args:
            model: Name under which the host serves the model.
            extra: What this host wants besides.
        """
        body: dict[str, Any] = {"temperature": 0, **self.params}
        body |= {"model": model, "messages": self.head.messages(self.user)}
        body |= {"max_tokens": self.max_tokens}
        if tools := self.head.tool_list():
            body["tools"] = tools
        if self.salt is not None:
            body["cache_salt"] = self.salt
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body | dict(extra)


@dataclass(frozen=True)
class ChatResult:
    """One answer.

    Attributes:
        text: The answer; empty where the model called a tool.
        finish: Why it ended (`stop`, `length` ...).
        prompt_tokens: Prompt length.
        cached_tokens: Prompt tokens taken from the cache; None: the host does not say.
        ttft_ms: Time to the first token; None: not streamed.
        total_ms: Time to the last token.
        completion_tokens: Length of the answer; 0 where the host does not say.
    """

    text: str
    finish: str | None
    prompt_tokens: int
    cached_tokens: int | None
    ttft_ms: float | None
    total_ms: float
    completion_tokens: int = 0


def result(
    text: str, finish: str | None, usage: Mapping[str, Any], ttft_ms: float | None, total_ms: float
) -> ChatResult:
    """Return an answer from its parts and the `usage` object.

    Raises:
        RequestRefused: The text can't be stored, or a count is none.
    """
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        raise RequestRefused(200, OTHER_SHAPE) from None
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens")
    return ChatResult(
        text=text,
        finish=finish,
        prompt_tokens=_count(usage.get("prompt_tokens") or 0),
        cached_tokens=None if cached is None else _count(cached),
        ttft_ms=ttft_ms,
        total_ms=total_ms,
        completion_tokens=_count(usage.get("completion_tokens") or 0),
    )


def said(content: Any) -> str:
    """Return the text of an answer or a piece of one; empty where there is none.

    Raises:
        RequestRefused: It is no string.
    """
    if not isinstance(content or "", str):
        raise RequestRefused(200, OTHER_SHAPE)
    return content or ""


def _count(number: Any) -> int:
    if not isinstance(number, int | float) or not 0 <= number <= _MOST_TOKENS:
        raise RequestRefused(200, OTHER_SHAPE)
    return int(number)


async def events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON objects of a server-sent event stream, up to `[DONE]`."""
    async for line in lines:
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            return
        yield json.loads(data)


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two prompts share from the beginning."""
    shared = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        shared += 1
    return shared


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def own(plan_id: str, item_id: str = "") -> dict[str, str]:
    """Return the headers by which our own requests are known in every log."""
    unique = uuid.uuid4().hex[:12]
    return {
        "x-warmup": plan_id,
        "X-Request-Id": "-".join(part for part in ("warmup", item_id, unique) if part),
    }
