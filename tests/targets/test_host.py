"""A model host is known by what it answers; a tiny real server answers here, badly on request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from tests.targets.tiny_host import BLOCK, MODEL, TinyHost, serving
from warmup_lib.errors import ConfigError, HostUnavailable, InputDataError
from warmup_lib.targets.capabilities import Capabilities
from warmup_lib.targets.chat import Chat, Head, RequestRefused, own
from warmup_lib.targets.host import LOWEST_PRIORITY, ModelHost, as_host
from warmup_lib.targets.store import RedisStore

T = TypeVar("T")
HEAD = Head(MODEL, "one two three four five six seven")
TOOLS = '[{"type": "function", "function": {"name": "f", "parameters": {}}}]'


@pytest.fixture
def tiny() -> Iterator[TinyHost]:
    with serving(TinyHost()) as host:
        yield host


def run(tiny: TinyHost, work: Callable[[ModelHost], Awaitable[T]], **settings: Any) -> T:
    async def inside() -> T:
        host = ModelHost("gpu", tiny.url, timeout_s=5, **settings)
        try:
            return await work(host)
        finally:
            await host.close()

    return asyncio.run(inside())


def test_epoch_changes_with_the_process(tiny: TinyHost) -> None:
    first = run(tiny, lambda h: h.epoch())
    assert first == run(tiny, lambda h: h.epoch()) == "1000.0"
    tiny.restart()
    assert run(tiny, lambda h: h.epoch()) == "1001.0"
    tiny.status["/metrics"] = 404
    assert run(tiny, lambda h: h.epoch()) == "unknown"


def test_an_able_host(tiny: TinyHost) -> None:
    assert run(tiny, lambda h: h.capabilities()) == Capabilities(
        tokenize=True,
        render=False,
        token_prompts=True,
        cached_tokens=True,
        salt=True,
        priority=True,
        block_size=BLOCK,
        kv_tokens=100 * BLOCK,
    )
    assert {h["x-warmup"] for h in tiny.headers} == {"capabilities"}


@pytest.mark.parametrize(
    ("knows", "expected"),
    [
        ({"caching", "salt"}, (True, True, False)),
        ({"caching", "priority"}, (True, False, True)),
        ({"caching", "salt", "salt refused"}, (True, False, False)),
        ({"salt", "priority"}, (False, False, True)),
    ],
)
def test_what_a_host_lacks_is_found(
    tiny: TinyHost, knows: set[str], expected: tuple[bool, bool, bool]
) -> None:
    tiny.knows = knows
    can = run(tiny, lambda h: h.capabilities())
    assert (can.cached_tokens, can.salt, can.priority) == expected


def test_capabilities_are_found_once(tiny: TinyHost) -> None:
    async def work(host: ModelHost) -> int:
        await asyncio.gather(*[host.capabilities() for _ in range(5)])
        return len(tiny.requests)

    assert run(tiny, work) == 3


def test_request_and_answer(tiny: TinyHost) -> None:
    chat = Chat(
        HEAD, "hello", 5, salt="s1", params={"stop": ["x"]}, headers=own("plan-1", "item-1")
    )
    answer = run(tiny, lambda h: h.chat(chat), models={"other": "x"}, api_key="k")
    assert (answer.text, answer.finish, answer.prompt_tokens) == ("Yes. It", "length", 10)
    assert (answer.cached_tokens, answer.ttft_ms) == (0, None)
    assert tiny.requests == [
        {
            "model": MODEL,
            "messages": [
                {"role": "system", "content": HEAD.system_prompt},
                {"role": "user", "content": "hello"},
            ],
            "temperature": 0,
            "stop": ["x"],
            "max_tokens": 5,
            "cache_salt": "s1",
            "priority": LOWEST_PRIORITY,
        }
    ]
    headers = {name.lower(): value for name, value in tiny.headers[0].items()}
    assert headers["x-warmup"] == "plan-1"
    assert headers["x-request-id"].startswith("warmup-item-1-")
    assert headers["authorization"] == "Bearer k"


def test_streaming_measures_the_first_token_and_sees_the_cache(tiny: TinyHost) -> None:
    chat = Chat(HEAD, "hello", salt="s1", low_priority=False, stream=True)

    async def work(host: ModelHost) -> list[Any]:
        return [await host.chat(chat) for _ in range(2)]

    first, second = run(tiny, work)
    assert (first.text, first.cached_tokens, second.cached_tokens) == ("Yes. It", 0, 8)
    assert 0 < second.ttft_ms <= second.total_ms
    assert "priority" not in tiny.requests[0]


def test_the_logs_names_become_the_served_ones(tiny: TinyHost) -> None:
    async def work(host: ModelHost) -> list[str]:
        heads = [Head("gpt", None), Head("gpt", None, adapter="lora"), Head("plain", None)]
        return [host.model(head) for head in heads]

    assert run(tiny, work, models={"gpt": MODEL, "lora": "lora-1"}) == [MODEL, "lora-1", "plain"]


def test_what_a_host_refuses_is_left_out(tiny: TinyHost) -> None:
    tiny.knows = {"caching", "salt"}
    chat = Chat(Head(MODEL, "x", TOOLS), "hello")
    answer = run(tiny, lambda h: h.chat(chat))
    assert answer.text == "Yes. It"
    assert [("priority" in r, r.get("tool_choice")) for r in tiny.requests] == [
        (True, None),
        (False, None),
        (False, "none"),
    ]


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (400, RequestRefused, "HTTP 400: the host refuses the request"),
        (404, RequestRefused, "HTTP 404: the model is not served here"),
        (500, RequestRefused, "HTTP 500: error inside the host"),
        (401, ConfigError, "target 'gpu' refuses the key"),
        (429, HostUnavailable, "it answers 429"),
        (503, HostUnavailable, "it answers 503"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_by_status_quote_nothing(
    tiny: TinyHost, status: int, error: type[Exception], words: str, stream: bool
) -> None:
    tiny.status["/v1/chat/completions"] = status
    with pytest.raises(error, match=words) as caught:
        run(tiny, lambda h: h.chat(Chat(HEAD, "hello", stream=stream)))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("raw", [b"<html>", b"[]", b'{"choices": []}', b'{"choices": [{}]}'])
def test_an_answer_of_another_shape_is_no_answer(tiny: TinyHost, raw: bytes) -> None:
    tiny.raw = raw
    with pytest.raises(HostUnavailable, match="not of the OpenAI shape"):
        run(tiny, lambda h: h.chat(Chat(HEAD, "hello")))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("content", "usage"),
    [
        ("abc \ud800 def", {}),
        ([{"type": "text", "text": "abc"}], {}),
        ({"text": "abc"}, {}),
        (7, {}),
        ("abc", {"prompt_tokens": 10**25}),
        ("abc", {"completion_tokens": -1}),
        ("abc", {"prompt_tokens": float("nan")}),
        ("abc", {"prompt_tokens_details": {"cached_tokens": "many"}}),
    ],
)
def test_an_answer_that_is_no_text_or_no_count_fails_its_request_alone(
    tiny: TinyHost, content: Any, usage: dict[str, Any], stream: bool
) -> None:
    part = {"delta" if stream else "message": {"content": content}, "finish_reason": "stop"}
    answer = json.dumps({"choices": [part], "usage": usage})
    tiny.raw = (f"data: {answer}\n\n" if stream else answer).encode()
    with pytest.raises(RequestRefused, match=r"^HTTP 200: its answer is not of the OpenAI shape$"):
        run(tiny, lambda h: h.chat(Chat(HEAD, "hello", stream=stream)))


def test_a_stream_with_an_odd_usage_is_no_answer(tiny: TinyHost) -> None:
    tiny.raw = b'data: {"choices": [], "usage": [1]}\n\n'
    with pytest.raises(HostUnavailable, match="not of the OpenAI shape"):
        run(tiny, lambda h: h.chat(Chat(HEAD, "hello", stream=True)))


def test_a_broken_stream_is_no_answer(tiny: TinyHost) -> None:
    tiny.raw = b"data: {broken\n\n"
    with pytest.raises(HostUnavailable, match="not of the OpenAI shape"):
        run(tiny, lambda h: h.chat(Chat(HEAD, "hello", stream=True)))


def test_health(tiny: TinyHost) -> None:
    run(tiny, lambda h: h.ready())
    tiny.status["/health"] = 404
    run(tiny, lambda h: h.ready())
    tiny.status["/health"] = 503
    with pytest.raises(HostUnavailable, match="/health answers 503"):
        run(tiny, lambda h: h.ready())


def test_no_more_requests_in_flight_than_allowed(tiny: TinyHost) -> None:
    flying, most = 0, 0
    chat = tiny.chat

    def counted(body: dict[str, Any]) -> Any:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        answer = chat(body)
        flying -= 1
        return answer

    tiny.chat = counted  # type: ignore[method-assign]

    async def work(host: ModelHost) -> None:
        await asyncio.gather(*[host.chat(Chat(HEAD, f"hello {n}")) for n in range(12)])

    run(tiny, work, concurrency=2)
    assert len(tiny.requests) == 12
    assert 1 <= most <= 2


def test_nobody_there(tiny: TinyHost) -> None:
    tiny.url = "http://127.0.0.1:1"
    with pytest.raises(HostUnavailable, match="'gpu' is not available: no connection"):
        run(tiny, lambda h: h.chat(Chat(HEAD, "secret")))
    with pytest.raises(HostUnavailable, match="no connection"):
        run(tiny, lambda h: h.chat(Chat(HEAD, "secret", stream=True)))


def test_tools_that_are_no_list() -> None:
    for tools in ("{", "{}", "3"):
        with pytest.raises(InputDataError, match="no JSON list"):
            Head(MODEL, "x", tools).tool_list()
    assert Head(MODEL, "x", "[]").tool_list() is None


def test_a_redis_is_no_host() -> None:
    with pytest.raises(ConfigError, match="'r' is no model host"):
        as_host(RedisStore("r", "redis://127.0.0.1:1"))
