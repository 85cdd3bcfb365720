"""Heads as token ids, by the host's own template and tokenizer, and prompts of ids to fill its KV.

A cache keeps whole blocks of tokens. Only the host knows where they end, so that a head can be cut
there, counted, and grown step by step, when its ids come from the host.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from warmup_lib.targets.chat import (
    PROBE_TEXT,
    WARM_TEXT,
    Chat,
    ChatResult,
    Head,
    common_prefix,
    result,
    said,
)
from warmup_lib.targets.host import ModelHost


async def head_tokens(host: ModelHost, head: Head) -> array[int]:
    """Return the tokens that all requests with this head begin with; asked once a head.

    Raises:
        HostUnavailable: No answer.
        RequestRefused: The host renders no ids, or refuses this head.
        InputDataError: The head's tools are no JSON list.
    """
    if head not in host.kv.heads:
        first, second = [await _rendered(host, head, text) for text in (WARM_TEXT, PROBE_TEXT)]
        host.kv.heads[head] = first[: common_prefix(first, second)]
    return host.kv.heads[head]


async def _rendered(host: ModelHost, head: Head, user: str) -> array[int]:
    """Return the ids of a chat request: as it would be sent, else of its messages and tools."""
    can = await host.capabilities()
    path, field = (
        ("/v1/chat/completions/render", "token_ids") if can.render else ("/tokenize", "tokens")
    )
    body: dict[str, Any] = {"model": host.model(head), "messages": head.messages(user)}
    if tools := head.tool_list():
        body["tools"] = tools

    async def send(extra: Mapping[str, Any]) -> array[int]:
        response = await host.send("POST", path, json=body | dict(extra))
        host.check(response)
        with host.shape():
            return array("q", response.json()[field])

    async with host.turn(low_priority=False):
        return await host.fitted(send, low_priority=False, tools=bool(tools))


async def prefill(
    host: ModelHost,
    token_ids: Sequence[int],
    model: str,
    salt: str | None,
    headers: Mapping[str, str],
) -> ChatResult:
    """Have a host compute and keep the KV of a prompt of ids; it gives way to live traffic.

    Args:
        host: The host.
        token_ids: The prompt. Its last token is computed anew even where all of it is cached.
        model: Name under which the model or adapter is served.
        salt: `cache_salt`; None: the request carries none.
        headers: Further headers.

    Raises:
        HostUnavailable: No answer, or the host is overloaded.
        RequestRefused: The host refuses this request.
    """
    body: dict[str, Any] = {"model": model, "prompt": list(token_ids)}
    body |= {"max_tokens": 1, "temperature": 0}
    if salt is not None:
        body["cache_salt"] = salt

    async def send(extra: Mapping[str, Any]) -> ChatResult:
        start = time.perf_counter()
        response = await host.send(
            "POST", "/v1/completions", json=body | dict(extra), headers=headers
        )
        ms = (time.perf_counter() - start) * 1000.0
        host.check(response)
        with host.shape():
            answer = response.json()
            choice = answer["choices"][0]
            usage = answer.get("usage") or {}
            return result(said(choice["text"]), choice.get("finish_reason"), usage, None, ms)

    async with host.turn(low_priority=True):
        return await host.fitted(send, low_priority=True)


async def counted(host: ModelHost, head: Head, user: str, prompt_tokens: int) -> int:
    """Return how many tokens a head has at least, on a host that renders no ids.

    It is what a prompt with this head is longer than the same question without one, which begins
    with no less than the template puts around it.

    Args:
        host: The host.
        head: The head.
        user: The question that was sent with it.
        prompt_tokens: The length that the host reported for that prompt.

    Raises:
        HostUnavailable: No answer.
        RequestRefused: The host refuses the question.
    """
    bare = await host.chat(Chat(Head(head.model, None, None, head.adapter), user))
    return max(0, prompt_tokens - bare.prompt_tokens)
