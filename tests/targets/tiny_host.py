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

BLOCK = 4
MODEL = "tiny"


class TinyHost:
    def __init__(self) -> None:
        self.models = [MODEL]
        self.root: str | None = None  # folder of the models
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
        return f"process_start_time_seconds {self.started}\n{config}\n"

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

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if refusal := self.refuses(body):
            return refusal
        message = {"role": "assistant", "content": self.answer}
        choice = {"message": message, "finish_reason": self.finish}
        return 200, {"choices": [choice], "usage": self.usage(ids(body), body)}

    def complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if refusal := self.refuses(body):
            return refusal
        if "ids" not in self.knows:
            return _refusal("prompt must be a string", "prompt")
        choice = {"text": self.answer, "finish_reason": self.finish}
        return 200, {"choices": [choice], "usage": self.usage(body["prompt"], body)}

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
                {"data": [{"id": m, "root": self.host.root} for m in self.host.models]}
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
        elif self.path == "/v1/completions":
            host.prefills.append(body)
            status, answer = host.complete(body)
            self.send(status, json.dumps(answer).encode())
        elif self.path == "/v1/chat/completions":
            host.requests.append(body)
            host.headers.append(dict(self.headers))
            status, answer = host.chat(body)
            data = _stream(answer) if body.get("stream") and status == 200 else None
            self.send(status, host.raw or data or json.dumps(answer).encode())
        else:
            self.send(404, b"")


@contextmanager
def serving(host: TinyHost) -> Iterator[TinyHost]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"host": host}))
    server.daemon_threads = True
    host.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
