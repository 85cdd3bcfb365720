"""Heads are rendered by the host, and prompts of their ids fill what chats find."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from tests.targets.tiny_host import MODEL, TinyHost, ids, serving
from warmup_lib.errors import HostUnavailable, InputDataError
from warmup_lib.targets.chat import WARM_TEXT, Chat, Head, RequestRefused, own
from warmup_lib.targets.host import LOWEST_PRIORITY, ModelHost
from warmup_lib.targets.tokens import counted, head_tokens, prefill

T = TypeVar("T")
HEAD = Head(MODEL, "one two three four five six seven")  # with its role, 8 tokens + "user"
TOOLS = '[{"type": "function", "function": {"name": "f", "parameters": {}}}]'


@pytest.fixture
def tiny() -> Iterator[TinyHost]:
    with serving(TinyHost()) as host:
        yield host


def run(tiny: TinyHost, work: Callable[[ModelHost], Awaitable[T]]) -> T:
    async def inside() -> T:
        host = ModelHost("gpu", tiny.url, timeout_s=5)
        try:
            return await work(host)
        finally:
            await host.close()

    return asyncio.run(inside())


@pytest.mark.parametrize("way", ["render", "tokenize"])
@pytest.mark.parametrize("auto", [True, False])
def test_a_head_is_what_all_its_prompts_share(tiny: TinyHost, way: str, auto: bool) -> None:
    if way == "render":
        tiny.knows.add("render")
        tiny.status["/tokenize"] = 404
    if not auto:
        tiny.knows.discard("auto tools")
    shared = ids({"messages": [*HEAD.messages(""), {"role": "user", "content": ""}]})[:9]
    assert list(run(tiny, lambda h: head_tokens(h, HEAD))) == shared
    tools = Head(MODEL, HEAD.system_prompt, TOOLS)
    assert len(run(tiny, lambda h: head_tokens(h, tools))) == 9 + len(TOOLS.split())
    assert len(run(tiny, lambda h: head_tokens(h, Head(MODEL, None)))) == 1


def test_a_head_is_rendered_once(tiny: TinyHost) -> None:
    async def work(host: ModelHost) -> Any:
        first = await head_tokens(host, HEAD)
        tiny.status["/tokenize"] = 500
        return first, await head_tokens(host, HEAD)

    first, again = run(tiny, work)
    assert first == again


def test_a_head_that_can_not_be_rendered(tiny: TinyHost) -> None:
    async def work(host: ModelHost, head: Head) -> None:
        await host.capabilities()
        tiny.status["/tokenize"] = 400
        await head_tokens(host, head)

    with pytest.raises(RequestRefused, match="HTTP 400: the host refuses the request"):
        run(tiny, lambda h: work(h, HEAD))
    tiny.status.clear()
    with pytest.raises(InputDataError, match="no JSON list"):
        run(tiny, lambda h: work(h, Head(MODEL, "x", "{")))


def test_a_prompt_of_ids_fills_what_a_chat_finds(tiny: TinyHost) -> None:
    async def work(host: ModelHost) -> Any:
        tokens = await head_tokens(host, HEAD)
        first = await prefill(host, tokens, MODEL, "s1", own("plan-1", "item-1"))
        again = await prefill(host, tokens, MODEL, "s1", {})
        chats = [await host.chat(Chat(HEAD, "hello", salt=salt)) for salt in ("s1", "s2", None)]
        return first, again, [chat.cached_tokens for chat in chats]

    first, again, chats = run(tiny, work)
    assert (first.prompt_tokens, first.cached_tokens, again.cached_tokens) == (9, 0, 8)
    assert first.total_ms > 0
    assert chats == [8, 0, 0]
    body = tiny.prefills[-2]
    assert body.pop("prompt") == ids({"messages": HEAD.messages("")})
    assert body == {
        "model": MODEL,
        "max_tokens": 1,
        "temperature": 0,
        "cache_salt": "s1",
        "priority": LOWEST_PRIORITY,
    }


def test_a_prefill_gives_way_and_carries_no_priority_that_is_refused(tiny: TinyHost) -> None:
    tiny.knows.discard("priority")
    passed: list[int] = []

    class Gate:
        async def __aenter__(self) -> None:
            passed.append(len(tiny.prefills))

        async def __aexit__(self, *_: object) -> None:
            pass

    async def work(host: ModelHost) -> None:
        host.gate = lambda _tokens: Gate()  # type: ignore[assignment, return-value]
        await prefill(host, [1, 2, 3], MODEL, None, {})
        await prefill(host, [1, 2, 3], MODEL, None, {})

    run(tiny, work)
    assert passed == [0, 2]
    assert [("priority" in b, "cache_salt" in b) for b in tiny.prefills] == [
        (True, False),
        (False, False),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("status", "error"), [(400, RequestRefused), (500, RequestRefused), (503, HostUnavailable)]
)
def test_a_refused_prefill_quotes_nothing(
    tiny: TinyHost, status: int, error: type[Exception]
) -> None:
    tiny.status["/v1/completions"] = status
    with pytest.raises(error) as caught:
        run(tiny, lambda h: prefill(h, [1], MODEL, None, {}))
    assert "secret" not in str(caught.value)


def test_without_ids_a_head_is_counted_from_below(tiny: TinyHost) -> None:
    async def work(host: ModelHost) -> int:
        answer = await host.chat(Chat(HEAD, WARM_TEXT))
        return await counted(host, HEAD, WARM_TEXT, answer.prompt_tokens)

    assert run(tiny, work) == 8  # the ninth is the role of the user's message
