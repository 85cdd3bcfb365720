"""An example gateway: looks answers up, forwards misses, logs every request, mirrors some of them.

    uvicorn --factory samples.gateway:create_app --port 8080

Chats are OpenAI's, the tenant in the header `x-tenant`; settings and secret are the planner's.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from warmup_lib.config import HostTarget, load_config
from warmup_lib.errors import InputDataError, TargetUnavailable
from warmup_lib.keys import Request as Ask
from warmup_lib.layers.reading import open_cache
from warmup_lib.observe.instruments import install
from warmup_lib.observe.setup import start
from warmup_lib.pipeline import open_keys
from warmup_lib.reader import Computed, Mirror, Reader, chat_body, log_row, request_of
from warmup_lib.targets.chat import events
from warmup_lib.targets.open import open_targets, target_settings

CHAT = "/v1/chat/completions"


@dataclass
class Upstream:
    """What the model host said, and what the evidence tells of it."""

    asked: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    finish: str | None = "stop"
    usage: dict[str, Any] = field(default_factory=dict)
    ttft_ms: float | None = None
    whole: Any = None


class Gateway:
    """One model host behind one cache."""

    def __init__(self, log: Path, mirrored: float) -> None:
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
        self.mirror = Mirror(self.reader.cache.url, mirrored)
        self.log = log.open("a", encoding="utf-8")

    async def close(self) -> None:
        """Close what is open."""
        for one in (self.reader, self.target, self.mirror):
            await one.close()
        await self.http.aclose()
        self.telemetry.close()
        self.log.close()

    async def chat(self, request: Request) -> Response:
        """Answer one chat: from the cache, else from the host."""
        begun, at, headers = time.perf_counter(), datetime.now(UTC), request.headers
        how: dict[str, Any] = {"headers": headers, "user_segment": headers.get("x-user-segment")}
        try:
            body = await request.json()
            who, adapter = headers.get("x-tenant", ""), headers.get("x-adapter")
            ask = request_of(who, body, adapter=adapter, dimensions=how)
            found = await self.reader.get_or_compute(ask, lambda: self.forward(ask, body), **how)
        except (ValueError, InputDataError) as error:
            said = str(error) if isinstance(error, InputDataError) else "the body is no JSON"
            return JSONResponse({"error": {"message": said}}, 400)
        ms = (time.perf_counter() - begun) * 1000
        up: Upstream = found.computed.detail if found.computed else Upstream()
        first = ms if found.joined or up.ttft_ms is None else up.ttft_ms
        self.first_token.record(first / 1000, {"served_from": found.layer or "host"})
        how |= {"status": up.status, "ttft_ms": first, "latency_ms": ms, "usage": up.usage}
        ident, messages = f"gw-{uuid.uuid4().hex}", body["messages"]
        row = log_row(ident, at, ask, messages, found, asked=up.asked, **how)
        self.log.write(json.dumps(row) + "\n")
        self.log.flush()
        await self.mirror.copy(request.method, headers, body)
        if up.status != 200 or up.whole is not None:
            return JSONResponse(up.whole or {"error": {"message": "no answer"}}, up.status)
        stream, said = bool(body.get("stream")), found.answer or ""
        whole = chat_body(ask.model, said, finish=up.finish, usage=up.usage, chunk=stream)
        data = f"data: {json.dumps(whole)}\n\ndata: [DONE]\n\n"
        return Response(data, media_type="text/event-stream") if stream else JSONResponse(whole)

    async def forward(self, ask: Ask, body: dict[str, Any]) -> Computed:
        """Ask the host; what is no whole text, such as an error, is an answer that is not kept."""
        places = self.reader.cache.places
        adapter = places.adapter(ask.adapter)
        served = adapter or ask.model
        up, begun, text = Upstream(status=502, finish=None), time.perf_counter(), ""
        up.asked = {"host": self.host.name, "adapter": adapter, "host_ready": True}
        sent = {**body, "model": self.host.models.get(served, served), "stream": not ask.tools}
        sent |= {} if ask.tools else {"stream_options": {"include_usage": True}}
        if self.host.cache_salt == "derived":
            sent["cache_salt"] = places.keys.salt(ask.tenant, adapter)
            up.asked["salt"] = hashlib.sha256(sent["cache_salt"].encode()).hexdigest()[:16]
        try:
            up.asked["host_epoch"] = await self.target.epoch()
            async with self.http.stream("POST", CHAT, json=sent) as response:
                if response.status_code != 200 or ask.tools:
                    up.whole, up.status = json.loads(await response.aread()), response.status_code
                    return Computed("", keep=False, detail=up)
                async for event in events(response.aiter_lines()):
                    up.usage = event.get("usage") or up.usage
                    for choice in event.get("choices", ()):
                        up.finish = choice.get("finish_reason") or up.finish
                        up.ttft_ms = up.ttft_ms or (time.perf_counter() - begun) * 1000
                        text += choice["delta"].get("content") or ""
                up.status = 200
        except (httpx.HTTPError, ValueError, TargetUnavailable):
            up.asked["host_ready"] = False
        return Computed(text, bool(up.finish) and body.get("n", 1) == 1, up)


def create_app() -> FastAPI:
    """Return the gateway, its log and the share that it mirrors from the environment."""

    @asynccontextmanager
    async def opened(app: FastAPI) -> AsyncIterator[None]:
        log = Path(os.environ.get("GATEWAY_LOG", "requests.jsonl"))
        gateway = Gateway(log, float(os.environ.get("GATEWAY_MIRROR", "0")))
        app.mount("/metrics", gateway.telemetry.asgi())
        app.add_api_route(CHAT, gateway.chat, methods=["POST"])
        yield
        await gateway.close()

    return FastAPI(lifespan=opened)
