"""Stands where an application's gateway stands: looks for an answer, else asks the model host."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from bench.effect.traffic import Ask
from warmup_lib.config import Config
from warmup_lib.embed.encoder import Encoder
from warmup_lib.layers.base import Context, Lookup
from warmup_lib.layers.registry import LAYERS
from warmup_lib.targets.base import Target
from warmup_lib.targets.chat import Chat, Head

if TYPE_CHECKING:
    import httpx

Find = Callable[[Lookup], Awaitable[bool]]
"""Says whether the answer cache serves a request."""


@dataclass
class Sample:
    """What one request saw.

    Attributes:
        request_id: In the log.
        tenant: The tenant.
        head: Digest of its head.
        identity: Digest of all that its answer depends on.
        adapter: The adapter; None: the base model.
        planned: Whether the plan warms its head.
        tokens: Of its head, as the host counts them.
        due: When it was due, in seconds since the replay began.
        first_ms: From when it was due to its first token, or to the stored answer; None: none came.
        served: `host`, `responses` (an answer that was warmed) or `gateway` (one that this run's
            own traffic left); None: nothing served it.
        prompt_tokens: Prompt length; None: the answer was not waited for.
        cached_tokens: Of these, from the cache.
    """

    request_id: str
    tenant: str
    head: str
    identity: str
    adapter: str | None
    planned: bool
    tokens: int
    due: float = 0.0
    first_ms: float | None = None
    served: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None

    def row(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Manner:
    """How requests are sent.

    Attributes:
        cold: A word that no other run uses, under whose salts nothing is cached; None: requests
            carry the salts that the plan was warmed under.
        other: The same word for heads that the plan does not warm, so that what one step of a
            series leaves of them is not there in the next.
        mark: Goes before the question: nothing behind the head is then cached from an earlier step.
        answer: Let the model answer at the log's length; else one token is taken.
        answers: Look for an answer first.
    """

    cold: str | None = None
    other: str | None = None
    mark: str = ""
    answer: bool = False
    answers: bool = False


class Gateway:
    """Sends the log's requests to one host.

    Args:
        http: Client with the host's address.
        context: What the layers need, with the keys that the plan was applied under.
        planned: Tenant and head of what the plan warms.
        tokens: Length of each head in tokens, by digest.
        manner: How to send.
        find: The answer cache; None: there is none.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        context: Context,
        planned: Collection[tuple[str, str]],
        tokens: Mapping[str, int],
        manner: Manner,
        find: Find | None = None,
    ) -> None:
        self._http = http
        self._context = context
        self._planned = planned
        self._tokens = tokens
        self._manner = manner
        self._find = find
        self._stored: set[str] = set()

    def sample(self, ask: Ask) -> Sample:
        """Return the sample of a request that is not sent yet."""
        one = ask.lookup
        return Sample(
            one.request_id,
            one.tenant,
            one.head_digest,
            one.response_digest,
            one.adapter,
            ask.head in self._planned,
            self._tokens[one.head_digest],
        )

    async def send(self, ask: Ask, sample: Sample, due: float) -> None:
        """Send one request and fill its sample, the first token before the answer has ended.

        Args:
            ask: The request.
            sample: Its sample.
            due: When it was due, by `time.perf_counter`.
        """
        if self._find is not None:
            if sample.identity in self._stored:
                sample.served = "gateway"
            elif await self._find(ask.lookup):
                sample.served = "responses"
            if sample.served is not None:
                sample.first_ms = (time.perf_counter() - due) * 1000
                return
        await self._stream(self._body(ask), sample, due)
        self._stored.add(sample.identity)

    def _body(self, ask: Ask) -> dict[str, Any]:
        one, manner = ask.lookup, self._manner
        adapter = self._context.adapter(one.adapter)
        word = manner.cold or (None if ask.head in self._planned else manner.other)
        tenant = one.tenant if word is None else f"{one.tenant}~{word}"
        chat = Chat(
            Head(one.model, one.system_prompt, one.tools, adapter),
            manner.mark + one.prompt,
            max_tokens=ask.answer_tokens if manner.answer else 1,
            salt=self._context.keys.salt(tenant, adapter),
            stream=True,
            params={"ignore_eos": True} if manner.answer else {},
        )
        # Without a tool parser vLLM takes tools only when none may be called.
        return chat.body(adapter or one.model, {"tool_choice": "none"} if one.tools else {})

    async def _stream(self, body: Mapping[str, Any], sample: Sample, due: float) -> None:
        async with self._http.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                await response.aread()
                raise RuntimeError(
                    f"the host answers {response.status_code}: {response.text[:200]}"
                )
            # Only the lines that matter are parsed: host and gateway share the cores.
            async for line in response.aiter_lines():
                if sample.first_ms is None and _is_token(line):
                    sample.first_ms = (time.perf_counter() - due) * 1000
                    sample.served = "host"
                if '"usage":{' in line:
                    _take_usage(line, sample)


def _is_token(line: str) -> bool:
    if not line.startswith("data: {"):
        return False
    choices = json.loads(line[6:])["choices"]
    return any(one["delta"].get("content") or one.get("finish_reason") for one in choices)


def _take_usage(line: str, sample: Sample) -> None:
    usage = json.loads(line[6:])["usage"]
    sample.prompt_tokens = usage["prompt_tokens"]
    details = usage.get("prompt_tokens_details") or {}
    sample.cached_tokens = details.get("cached_tokens") or 0


def answer_cache(target: Target, context: Context, config: Config, cold: str | None) -> Find:
    """Return the lookup of layer `responses`; the question is encoded within it, as in service.

    Args:
        target: The Redis.
        context: What the layer needs.
        config: Names the encoder.
        cold: Look where nothing was ever warmed; None: where the plan was.
    """
    from warmup_lib.embed.texts import encode_texts

    encoder = _encoder(config.model_dump_json())
    layer, context = LAYERS["responses"], replace(context, control=cold)

    async def find(lookup: Lookup) -> bool:
        vectors, known = encode_texts(encoder, [lookup.prompt], 1)
        vector = vectors[0] if known[0] else None
        [match] = await layer.find([replace(lookup, vector=vector)], target, context)
        return match.hit

    return find


@cache
def _encoder(settings: str) -> Encoder:
    from warmup_lib.embed.opening import open_encoder

    encoder = open_encoder(Config.model_validate_json(settings))
    encoder.encode(["the first text loads it"])
    return encoder
