"""A model host that gets warm: an OpenAI-compatible server, asked for what it can do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import Any, Literal, TypeVar

import httpx

from warmup_lib.errors import ConfigError, HostUnavailable
from warmup_lib.targets import metrics
from warmup_lib.targets.base import Target, TargetKind
from warmup_lib.targets.capabilities import Capabilities, find_capabilities
from warmup_lib.targets.chat import (
    OTHER_SHAPE,
    Chat,
    ChatResult,
    Head,
    RequestRefused,
    events,
    result,
    said,
)
from warmup_lib.targets.kv import KvCache

T = TypeVar("T")
SaltMode = Literal["none", "as-logged", "derived"]

LOWEST_PRIORITY = 1_000_000
"""vLLM serves smaller numbers first."""

Gate = Callable[[int], AbstractAsyncContextManager[None]]
"""Takes the tokens a request asks for; entered once it may be sent, left when it was answered."""

CONNECT_TIMEOUT_S = 5.0
_CHAT = "/v1/chat/completions"


class ModelHost:
    """A model host, by its address. Nothing is sent before the first call.

    Args:
        name: The configured name.
        url: Address without `/v1`.
        api_key: Bearer key; None: none is sent.
        models: Name in the log -> name served here.
        cache_salt: What the gateway sends as `cache_salt`.
        concurrency: Most requests in flight.
        timeout_s: Longest wait for one answer.
    """

    kind: TargetKind = "host"

    def __init__(
        self,
        name: str,
        url: str,
        *,
        api_key: str | None = None,
        models: Mapping[str, str] | None = None,
        cache_salt: SaltMode = "as-logged",
        concurrency: int = 16,
        timeout_s: float = 60.0,
    ) -> None:
        self.name = name
        self.cache_salt: SaltMode = cache_salt
        self._models = dict(models or {})
        self.gate: Gate | None = None
        self.kv = KvCache()
        self._slots = asyncio.Semaphore(concurrency)
        self._finding = asyncio.Lock()
        self._capabilities: Capabilities | None = None
        self._priority = True
        self._tool_choice: str | None = None
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/"),
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=concurrency + 4),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # -- what it is and can do -------------------------------------------------------------------

    async def epoch(self) -> str:
        """Return the start time of the server process, from its metrics; `unknown` without any."""
        return metrics.epoch(await self.metrics())

    async def ready(self) -> None:
        """Return when the host says that it is healthy.

        Raises:
            HostUnavailable: It does not answer or says that it is not.
        """
        response = await self.send("GET", "/health")
        if response.status_code not in (200, 404):  # gateways have no /health
            raise HostUnavailable(self.name, f"/health answers {response.status_code}")

    async def served(self) -> set[str]:
        """Return the names of the models and adapters it serves now.

        Raises:
            ConfigError: The host refuses the key.
            HostUnavailable: It does not answer.
        """
        response = await self.send("GET", "/v1/models")
        if response.status_code in (401, 403):
            self.check(response)
        if response.status_code != 200:
            raise HostUnavailable(self.name, f"/v1/models answers {response.status_code}")
        with self.shape():
            return {str(model["id"]) for model in response.json()["data"]}

    @property
    def own_models(self) -> set[str]:
        """The served names that the settings give for models and adapters in the log."""
        return set(self._models.values())

    @property
    def takes_priority(self) -> bool:
        """Whether no request with a priority was refused so far."""
        return self._priority

    def model(self, head: Head) -> str:
        """Return the name under which the host serves a head's adapter or model."""
        logged = head.adapter or head.model
        return self._models.get(logged, logged)

    async def capabilities(self) -> Capabilities:
        """Return what the host can do; found once, with a few short requests.

        Raises:
            HostUnavailable: It does not answer, serves no model, or refuses even these.
        """
        async with self._finding:
            if self._capabilities is None:
                try:
                    self._capabilities = await find_capabilities(self)
                except RequestRefused as error:
                    raise HostUnavailable(self.name, f"a plain request gets {error}") from None
        return self._capabilities

    # -- requests --------------------------------------------------------------------------------

    async def chat(self, chat: Chat) -> ChatResult:
        """Send one chat request and wait for its answer.

        Raises:
            HostUnavailable: No answer, or the host is overloaded.
            RequestRefused: The host refuses this request.
        """
        async with self.turn(low_priority=chat.low_priority, tokens=chat.max_tokens):
            return await self._chat(chat)

    @asynccontextmanager
    async def turn(self, *, low_priority: bool, tokens: int = 1) -> AsyncIterator[None]:
        """Wait for a free slot and, with a request that gives way, for the gate to open.

        Args:
            low_priority: Give way to live traffic.
            tokens: Tokens that the request asks for; 0: it generates nothing.
        """
        gate = self.gate(tokens) if low_priority and self.gate is not None else nullcontext()
        async with gate, self._slots:
            yield

    async def fitted(
        self,
        send: Callable[[Mapping[str, Any]], Awaitable[T]],
        *,
        low_priority: bool,
        tools: bool = False,
    ) -> T:
        """Send a request, and once more without what this host turns out not to accept.

        Args:
            send: Sends it, its body extended by what is passed.
            low_priority: Let all other traffic go first, where the host knows priorities.
            tools: The request holds tools.

        Raises:
            HostUnavailable: No answer, or the host is overloaded.
            RequestRefused: The host refuses this request.
        """
        while True:
            extra: dict[str, Any] = {}
            if low_priority and self._priority:
                extra["priority"] = LOWEST_PRIORITY
            if tools and self._tool_choice:
                extra["tool_choice"] = self._tool_choice
            try:
                return await send(extra)
            except _NotAccepted as error:
                if error.reason == "priority" and "priority" in extra:
                    self._priority = False
                elif error.reason == "tool_choice" and tools and "tool_choice" not in extra:
                    # Without a tool parser vLLM takes tools only when none may be called; they
                    # are part of the prompt all the same.
                    self._tool_choice = "none"
                else:
                    raise

    async def _chat(self, chat: Chat) -> ChatResult:
        async def send(extra: Mapping[str, Any]) -> ChatResult:
            body = chat.body(self.model(chat.head), extra)
            return await (self._streamed if chat.stream else self._whole)(chat, body)

        tools = bool(chat.head.tools)
        return await self.fitted(send, low_priority=chat.low_priority, tools=tools)

    async def _whole(self, chat: Chat, body: Mapping[str, Any]) -> ChatResult:
        start = time.perf_counter()
        response = await self.send("POST", _CHAT, json=body, headers=chat.headers)
        total = _ms_since(start)
        self.check(response)
        with self.shape():
            answer = response.json()
            choice = answer["choices"][0]
            text = said(choice["message"].get("content"))
            usage = answer.get("usage") or {}
            return result(text, choice.get("finish_reason"), usage, None, total)

    async def _streamed(self, chat: Chat, body: Mapping[str, Any]) -> ChatResult:
        text, finish, ttft = "", None, None
        usage: Mapping[str, Any] = {}
        start = time.perf_counter()
        async with self._stream(body, chat.headers) as response:
            with self.shape():
                async for event in events(response.aiter_lines()):
                    usage = event.get("usage") or usage
                    for choice in event.get("choices") or ():
                        piece = said(choice["delta"].get("content"))
                        finish = choice.get("finish_reason") or finish
                        if ttft is None and (piece or finish):
                            ttft = _ms_since(start)
                        text += piece
                return result(text, finish, usage, ttft, _ms_since(start))

    # -- transport -------------------------------------------------------------------------------

    async def metrics(self) -> str:
        """Return the host's Prometheus page; empty where it has none."""
        response = await self.send("GET", "/metrics")
        return response.text if response.status_code == 200 else ""

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request, whatever the answer says.

        Raises:
            HostUnavailable: No answer.
        """
        try:
            return await self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise HostUnavailable(self.name, _reason(error)) from None

    @asynccontextmanager
    async def _stream(
        self, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        try:
            async with self._http.stream("POST", _CHAT, json=body, headers=headers) as response:
                if response.status_code != 200:
                    await response.aread()
                    self.check(response)
                yield response
        except httpx.HTTPError as error:
            raise HostUnavailable(self.name, _reason(error)) from None

    @contextmanager
    def shape(self) -> Iterator[None]:
        """Take an answer that is no JSON, or not of the expected shape, for no answer."""
        try:
            yield
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            raise HostUnavailable(self.name, OTHER_SHAPE) from None

    def check(self, response: httpx.Response) -> None:
        """Raise what an answer that is no success means.

        Raises:
            ConfigError: The host refuses the key.
            HostUnavailable: It is overloaded.
            RequestRefused: It refuses this request.
        """
        status = response.status_code
        if status == 200:
            return
        if status in (401, 403):
            raise ConfigError(f"target '{self.name}' refuses the key: set its api_key_env")
        if status in (429, 502, 503, 504):
            raise HostUnavailable(self.name, f"it answers {status}")
        try:
            error = response.json()["error"]
            message, param = str(error.get("message") or "").lower(), str(error.get("param"))
        except (ValueError, KeyError, TypeError, AttributeError):
            message, param = "", ""
        if status == 400 and (param == "priority" or "priority scheduling" in message):
            raise _NotAccepted("priority")
        if status == 400 and "tool choice" in message:
            raise _NotAccepted("tool_choice")
        raise RequestRefused(status, _kind(status, message))


class _NotAccepted(RequestRefused):
    """The host does not accept an optional part of the request, which the reason names."""

    def __init__(self, what: str) -> None:
        super().__init__(400, what)


def as_host(target: Target) -> ModelHost:
    """Return the target as a model host.

    Raises:
        ConfigError: It is none.
    """
    if not isinstance(target, ModelHost):
        raise ConfigError(f"target '{target.name}' is no model host")
    return target


def _kind(status: int, message: str) -> str:
    """Return the kind of an error; the server's own text can quote the request."""
    if "context length" in message:
        return "longer than the model's context"
    if status == 404:
        return "the model is not served here"
    return "the host refuses the request" if status < 500 else "error inside the host"


def _reason(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.ConnectError):
        return "no connection"
    return f"the connection broke ({type(error).__name__})"


def _ms_since(start: float) -> float:
    return (time.perf_counter() - start) * 1000.0
