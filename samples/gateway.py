"""An example gateway: looks answers up, forwards misses, logs every request, mirrors some of them.

    uvicorn --factory samples.gateway:create_app --port 8080

Chats are OpenAI's, the tenant in the header `x-tenant`; settings and secret are the planner's. What
no stored text can answer (several choices, a call of a tool) is passed on as the host says it.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from warmup_lib.config import HostTarget, load_config
from warmup_lib.errors import InputDataError, TargetUnavailable
from warmup_lib.evidence import salt_digest
from warmup_lib.keys import Request as Ask
from warmup_lib.layers.reading import open_cache
from warmup_lib.observe.instruments import install
from warmup_lib.observe.setup import start
from warmup_lib.pipeline import open_keys
from warmup_lib.reader import Computed, Found, Heard, Mirror, Reader, log_row, openai
from warmup_lib.targets.chat import events
from warmup_lib.targets.open import open_targets, target_settings

CHAT = "/v1/chat/completions"


@dataclass
class Upstream:
    """What the model host said, and what the evidence tells of it."""

    asked: dict[str, Any] = field(default_factory=dict)
    heard: Heard = field(default_factory=lambda: Heard(finish="stop"))
    ttft_ms: float | None = None
    passed: Response | None = None


class Gateway:
    """One model host behind one cache."""

    def __init__(self, log: TextIO) -> None:
        config = load_config()
        self.reader = Reader(open_cache(config, open_keys(config)))
        self.telemetry = start(config.observe, "warmup-gateway")
        install(self.telemetry.instruments)
        meter = self.telemetry.meters.get_meter("gateway")
        self.first_token = meter.create_histogram("gateway.first_token.duration", unit="s")
        self.host = next(s for s in target_settings(config) if isinstance(s, HostTarget))
        [self.target] = open_targets(config, [self.host.name])
        key = os.environ.get(self.host.api_key_env or "")
        login = {"authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.AsyncClient(base_url=self.host.url, headers=login, timeout=120)
        self.mirror = Mirror(self.reader.cache.url, float(os.environ.get("GATEWAY_MIRROR", "0")))
        self.log = log

    async def close(self) -> None:
        """Close what is open."""
        for one in (self.reader, self.target, self.mirror):
            await one.close()
        await self.http.aclose()
        self.telemetry.close()

    async def chat(self, request: Request) -> Response:
        """Answer one chat: from the cache, else from the host."""
        begun, at, headers = time.perf_counter(), datetime.now(UTC), request.headers
        how: dict[str, Any] = {"headers": headers, "user_segment": headers.get("x-user-segment")}
        try:
            body = openai.body_of(await request.body())
            who, adapter = headers.get("x-tenant", ""), headers.get("x-adapter")
            ask = openai.request_of(who, body, adapter=adapter, dimensions=how)
            found = await self.find(ask, body, how)
        except InputDataError as error:
            return JSONResponse({"error": {"message": str(error)}}, 400)
        ms = (time.perf_counter() - begun) * 1000
        up: Upstream = found.computed.detail if found.computed else Upstream()
        first = ms if found.joined or up.ttft_ms is None else up.ttft_ms
        self.first_token.record(first / 1000, {"served_from": found.layer or "host"})
        said, kind = openai.chat_body(body, found.answer or "", up.heard)
        reply = up.passed or Response(said, media_type=kind)
        how |= {"status": reply.status_code, "ttft_ms": first, "latency_ms": ms, "asked": up.asked}
        ident, messages, usage = f"gw-{uuid.uuid4().hex}", body["messages"], up.heard.usage
        row = log_row(ident, at, ask, messages, found, usage=usage, **how)
        self.log.write(json.dumps(row) + "\n")
        self.log.flush()
        await self.mirror.copy(request.method, headers, body)
        return reply

    async def find(self, ask: Ask, body: dict[str, Any], how: dict[str, Any]) -> Found:
        """Look up what a text can answer, and ask the host for the rest."""
        if openai.can_keep(body):
            return await self.reader.get_or_compute(ask, lambda: self.forward(ask, body), **how)
        found = await self.reader.lookup(ask, **how) if openai.can_serve(body) else Found(hit=False)
        return found if found.hit else replace(found, computed=await self.forward(ask, body))

    async def forward(self, ask: Ask, body: dict[str, Any]) -> Computed:
        """Ask the host; what is no whole text, such as an error, is an answer that is not kept."""
        adapter = self.reader.cache.places.adapter(ask.adapter)
        told: dict[str, Any] = {"host": self.host.name, "adapter": adapter}
        name, begun = adapter or ask.model, time.perf_counter()
        up = Upstream(told, Heard(), passed=JSONResponse({"error": {"message": "no answer"}}, 502))
        sent = {**body, "model": self.host.models.get(name, name)}
        if keeps := openai.can_keep(body):
            sent |= {"stream": True, "stream_options": {"include_usage": True}}
        if self.host.cache_salt == "derived":
            sent["cache_salt"] = self.reader.cache.keys.salt(ask.tenant, adapter)
            told["salt"] = salt_digest(sent["cache_salt"])
        try:
            told |= {"host_epoch": await self.target.epoch(), "host_ready": True}
            async with self.http.stream("POST", CHAT, json=sent) as response:
                if response.status_code != 200 or not keeps:
                    said, kind = await response.aread(), response.headers.get("content-type")
                    up.passed = Response(said, response.status_code, media_type=kind)
                    return Computed("", keep=False, detail=up)
                async for event in events(response.aiter_lines()):
                    up.heard.take(event)
                    up.ttft_ms = up.ttft_ms or (time.perf_counter() - begun) * 1000
        except (httpx.HTTPError, TargetUnavailable, ValueError, RecursionError) as error:
            told["host_ready"] = not isinstance(error, TargetUnavailable)
            return Computed("", keep=False, detail=up)  # it broke off, or can't be read
        up.passed = None
        return Computed(up.heard.text, bool(up.heard.finish), up)


def create_app() -> FastAPI:
    """Return the gateway, its log and the share that it mirrors from the environment."""

    @asynccontextmanager
    async def opened(app: FastAPI) -> AsyncIterator[None]:
        with Path(os.environ.get("GATEWAY_LOG", "requests.jsonl")).open("a") as log:
            gateway = Gateway(log)
            app.mount("/metrics", gateway.telemetry.asgi())
            app.add_api_route(CHAT, gateway.chat, methods=["POST"])
            yield
            await gateway.close()

    return FastAPI(lifespan=opened)
