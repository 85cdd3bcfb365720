"""A model host small enough to misbehave on request: a real HTTP server whose tokens are words.

It keeps prompts in blocks under their salt, as vLLM does, and says what it took from there. What
it can't or won't do is switched by its attributes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.targets.tiny_adapters import TinyAdapters

BLOCK = 4
MODEL = "tiny"


class TinyHost:
    def __init__(self) -> None:
        self.models = [MODEL]
        self.adapters = TinyAdapters()
        self.root: str | None = None  # folder of the models
        self.context: int | None = None  # longest prompt and answer together
        self.engines = 1
        self.failing: dict[int, int] = {}  # engine -> chat requests that it fails from now on
        self.kv_blocks: int | None = 100  # what it says that it holds; it forgets nothing
        self.blocks: set[tuple[Any, ...]] = set()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.prefills: list[dict[str, Any]] = []
        self.answer = "Yes. It"
        self.finish = "length"
        self.status: dict[str, int] = {}
        self.started = 1000.0
        self.knows = {"priority", "salt", "caching", "auto tools", "ids"}
        self.raw: bytes | None = None
        self.url = ""

    def restart(self) -> None:
        self.blocks.clear()
        self.started += 1

    def metrics(self) -> str:
        size = "" if self.kv_blocks is None else f',num_gpu_blocks="{self.kv_blocks}"'
        config = f'vllm:cache_config_info{{block_size="{BLOCK}"{size}}} 1.0'
        running = "".join(
            f'vllm:num_requests_running{{engine="{engine}",model_name="{MODEL}"}} 0.0\n'
            for engine in range(self.engines)
        )
        start = f"process_start_time_seconds {self.started}"
        return f"{start}\n{config}\n{running}{self.adapters.metrics()}"

    def refuses(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if body.get("priority") and "priority" not in self.knows:
            return _refusal("priority scheduling is not enabled", "priority")
        if "tools" in body and "auto tools" not in self.knows and "tool_choice" not in body:
            return _refusal('"auto" tool choice requires a parser', None)
        if body.get("cache_salt") and "salt refused" in self.knows:
            return _refusal("unknown field", "cache_salt")
        return None

    def usage(self, ids: list[int], body: dict[str, Any]) -> dict[str, Any]:
        """Put a prompt into the cache and say what was there; its last token is never taken."""
        salt = str(body.get("cache_salt")) if "salt" in self.knows else ""
        place = (body["model"], salt)
        whole = [(*place, *ids[:end]) for end in range(BLOCK, len(ids) + 1, BLOCK)]
        usable = whole if len(ids) % BLOCK else whole[:-1]
        hits = 0
        while hits < len(usable) and usable[hits] in self.blocks:
            hits += 1
        usage: dict[str, Any] = {"prompt_tokens": len(ids), "completion_tokens": 2}
        if "caching" in self.knows:
            self.blocks.update(whole)
            usage |= {"prompt_tokens_details": {"cached_tokens": hits * BLOCK}}
        return usage

    def chat_on(self, engine: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if engine not in range(self.engines):
            return _refusal(f"data_parallel_rank {engine} is out of range", None)
        if self.failing.get(engine):
            self.failing[engine] -= 1
            return 500, {"error": {"message": "the engine is not there", "code": 500}}
        return self.chat(body)

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if refusal := self.refuses(body):
            return refusal
        message = {"role": "assistant", "content": self.answer}
        choice = {"message": message, "finish_reason": self.finish}
        return 200, {"choices": [choice], "usage": self.usage(ids(body), body)}

    def complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if refusal := self.refuses(body):
            return refusal
        if "logprobs" in body:
            return self.first_token(body)
        if "ids" not in self.knows:
            return _refusal("prompt must be a string", "prompt")
        choice = {"text": self.answer, "finish_reason": self.finish}
        return 200, {"choices": [choice], "usage": self.usage(body["prompt"], body)}

    def first_token(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        top = self.adapters.logprobs(body["model"], MODEL)
        if top is None:
            return 404, {"error": {"message": "the model does not exist"}}
        return 200, {"choices": [{"text": " a", "logprobs": {"top_logprobs": [top]}}]}

    def render(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "render" not in self.knows:
            return 403, {}
        return self.refuses(body) or (200, {"token_ids": ids(body)})


def ids(body: dict[str, Any]) -> list[int]:
    return [hash(word) for word in tokens(body)]


def tokens(body: dict[str, Any]) -> list[str]:
    tools = json.dumps(body["tools"]).split() if body.get("tools") else []
    return tools + [w for m in body["messages"] for w in (m["role"], *m["content"].split())]


def _refusal(message: str, param: str | None) -> tuple[int, dict[str, Any]]:
    return 400, {"error": {"message": message, "param": param, "code": 400}}


def _stream(whole: dict[str, Any]) -> bytes:
    choice = whole["choices"][0]
    parts: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]}]
    delta = {"content": choice["message"]["content"]}
    parts += [{"choices": [{"delta": delta, "finish_reason": choice["finish_reason"]}]}]
    parts += [{"choices": [], "usage": whole["usage"]}]
    return b"".join(b"data: " + json.dumps(p).encode() + b"\n\n" for p in parts) + b"data: [DONE]\n"


class _Handler(BaseHTTPRequestHandler):
    host: TinyHost

    def log_message(self, *_: Any) -> None:
        pass

    def send(self, status: int, body: bytes) -> None:
        with suppress(ConnectionError):  # a request that was given up
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def do_GET(self) -> None:
        pages = {
            "/metrics": self.host.metrics(),
            "/v1/models": json.dumps(
                {
                    "data": [
                        {"id": m, "root": self.host.root, "max_model_len": self.host.context}
                        for m in self.host.models
                    ]
                    + self.host.adapters.cards(MODEL)
                }
            ),
        }
        status = self.host.status.get(self.path, 200)
        self.send(status, pages.get(self.path, "").encode() if status == 200 else b"")

    def do_POST(self) -> None:
        host = self.host
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if status := host.status.get(self.path):
            self.send(status, b"the prompt was: secret words")
        elif self.path == "/tokenize":
            self.send(200, json.dumps({"tokens": ids(body)}).encode())
        elif self.path == "/v1/chat/completions/render":
            status, answer = host.render(body)
            self.send(status, json.dumps(answer).encode())
        elif self.path == "/v1/load_lora_adapter":
            status, answer = host.adapters.load(body, MODEL)
            self.send(status, json.dumps(answer).encode())
        elif self.path == "/v1/unload_lora_adapter":
            status, answer = host.adapters.unload(body)
            self.send(status, json.dumps(answer).encode())
        elif self.path == "/v1/completions":
            host.prefills.append(body)
            status, answer = host.complete(body)
            self.send(status, json.dumps(answer).encode())
        elif self.path == "/v1/chat/completions":
            host.requests.append(body)
            host.headers.append(dict(self.headers))
            engine = int(self.headers.get("X-data-parallel-rank") or 0)
            status, answer = host.chat_on(engine, body)
            data = _stream(answer) if body.get("stream") and status == 200 else None
            self.send(status, host.raw or data or json.dumps(answer).encode())
        else:
            self.send(404, b"")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the default of 5, connections that come together break


@contextmanager
def serving(host: TinyHost, port: int = 0) -> Iterator[TinyHost]:
    server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"host": host}))
    host.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
