"""The example gateway before hosts that say odd things: it keeps texts, and passes on the rest."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from samples.gateway import CHAT, create_app
from warmup_lib.stack.state import StackState

pytestmark = pytest.mark.stack


class Host(ThreadingHTTPServer):
    """Says what it is told to say.

    Attributes:
        says: Status, content type and body of its next answers.
        asked: The bodies that it got.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.says = (200, "text/event-stream", "")
        self.asked: list[dict[str, Any]] = []


class Handler(BaseHTTPRequestHandler):
    server: Host

    def do_GET(self) -> None:
        self._say(200, "text/plain", "process_start_time_seconds 1.7e9\n")

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.server.asked.append(json.loads(self.rfile.read(length)))
        self._say(*self.server.says)

    def _say(self, status: int, kind: str, body: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@dataclass
class World:
    """A gateway, the host behind it, and its log."""

    client: TestClient
    host: Host
    log: Path
    asks: int = 0

    def ask(self, new: bool = True, **more: Any) -> Any:
        """Ask something that nobody asked before, unless `new` is false."""
        self.asks += new
        text = f"Question {self.asks}?"
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        return self.client.post(CHAT, json=body)

    def rows(self, count: int) -> list[dict[str, Any]]:
        """Return the last rows of the log."""
        return [json.loads(line) for line in self.log.read_text().splitlines()[-count:]]


@contextmanager
def opened(folder: Path, redis_url: str) -> Iterator[World]:
    with Host() as host, pytest.MonkeyPatch.context() as patch:
        thread = threading.Thread(target=host.serve_forever, args=(0.02,))
        thread.start()
        targets = [
            {"kind": "redis", "name": "cache", "url": redis_url},
            {"kind": "host", "name": "gpu", "url": f"http://127.0.0.1:{host.server_port}"},
        ]
        off = {"weights": {"enabled": False}, "adapters": {"enabled": False}}
        (folder / "warmup.yaml").write_text(json.dumps({"targets": targets, "layers": off}))
        patch.chdir(folder)
        patch.setenv("WARMUP_SECRET", secrets.token_hex(16))
        patch.setenv("GATEWAY_LOG", str(folder / "log.jsonl"))
        with TestClient(create_app()) as client:
            client.headers["x-tenant"] = "acme"
            yield World(client, host, folder / "log.jsonl")
        host.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def world(stack_redis: StackState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    assert stack_redis.redis is not None
    with opened(tmp_path_factory.mktemp("gateway"), stack_redis.redis.url) as world:
        yield world


def stream(*events: Any) -> tuple[int, str, str]:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return 200, "text/event-stream", body + "data: [DONE]\n\n"


def piece(text: str, finish: str | None = None, index: int = 0) -> dict[str, Any]:
    delta = {"content": text} if text else {}
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 5}}


def test_a_text_is_kept_and_serves_both_forms(world: World) -> None:
    world.host.says = stream(piece("Hel"), piece("lo"), piece("", "stop"), USAGE, None)
    before = len(world.host.asked)
    first = world.ask().json()
    assert first["choices"][0]["message"]["content"] == "Hello"
    assert first["usage"] == {"prompt_tokens": 5}
    again = world.ask(new=False, stream=True, n=1, logprobs=False, tools=None)
    assert again.headers["content-type"].startswith("text/event-stream")
    chunk = json.loads(again.text.splitlines()[0].removeprefix("data: "))
    assert chunk["choices"][0]["delta"]["content"] == "Hello"
    assert len(world.host.asked) == before + 1
    cold, warm = world.rows(2)
    assert (cold.get("served_from"), warm["served_from"]) == (None, "responses")
    assert cold["cache_evidence"]["host_ready"] is True


TWO = [piece("one", index=0), piece("two", index=1), piece("", "stop", 0), piece("", "stop", 1)]
CALL = {"choices": [{"message": {"tool_calls": [{"function": {"name": "f"}}]}}]}
TOOLS = [{"type": "function", "function": {"name": "f"}}]


@pytest.mark.parametrize(
    ("more", "says", "looks"),
    [
        ({"n": 2, "stream": True}, stream(*TWO), False),
        ({"logprobs": True}, (200, "application/json", '{"logprobs": [1]}'), False),
        ({"tools": TOOLS}, (200, "application/json", json.dumps(CALL)), True),
        ({"tools": TOOLS, "stream": True}, stream(CALL), True),
        ({"what_we_never_heard_of": 1}, (200, "application/json", "{}"), False),
    ],
)
def test_what_no_text_can_be_is_passed_on_as_it_is(
    world: World, more: dict[str, Any], says: tuple[int, str, str], looks: bool
) -> None:
    world.host.says = says
    for again in (False, True):
        answer = world.ask(new=not again, **more)
        assert (answer.status_code, answer.text) == (says[0], says[2])
        assert answer.headers["content-type"].startswith(says[1])
        assert world.host.asked[-1].get("stream") == more.get("stream")
    assert [bool(row["cache_evidence"]["looked"]) for row in world.rows(2)] == [looks] * 2


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ((500, "application/json", '{"error": "boom"}'), 500),
        ((200, "text/event-stream", "data: {broken\n\n"), 502),
        (stream([1]), 502),
        (stream({"choices": [7]}), 502),
        (stream(piece("x", "stop"), {"choices": [{"delta": {"content": 5}}]}), 502),
        ((200, "text/event-stream", "data: " + "[" * 100_000 + "\n\n"), 502),
    ],
)
def test_a_fault_of_the_host_is_no_answer_and_does_not_say_that_it_was_not_ready(
    world: World, says: tuple[int, str, str], status: int
) -> None:
    world.host.says = says
    assert world.ask().status_code == status
    world.host.says = stream(piece("Hello", "stop"))
    assert "Hello" in world.ask(new=False).text
    faulty, sound = world.rows(2)
    assert (faulty["status"], sound["status"]) == (status, 200)
    assert faulty["cache_evidence"]["host_ready"] is True


def test_a_host_that_is_gone_was_not_ready(stack_redis: StackState, tmp_path: Path) -> None:
    assert stack_redis.redis is not None
    with opened(tmp_path, stack_redis.redis.url) as world:
        world.host.shutdown()
        world.host.server_close()
        assert world.ask().status_code == 502
        assert world.rows(1)[0]["cache_evidence"]["host_ready"] is False


@pytest.mark.parametrize(
    "body", ["{", "[1]", '{"model": "m", "x": NaN}', "[" * 100_000, '{"model": "\\ud800"}', "\xff"]
)
def test_a_body_that_is_no_chat_is_refused(world: World, body: str) -> None:
    before = len(world.host.asked)
    assert world.client.post(CHAT, content=body.encode("latin-1")).status_code == 400
    assert len(world.host.asked) == before


def test_a_repeated_header_is_logged_as_it_was_looked_up(world: World) -> None:
    world.host.says = stream(piece("Hello", "stop"))
    twice = [("cache-control", "max-age=60"), ("cache-control", "no-store")]
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi?"}]}
    world.client.post(CHAT, json=body, headers=twice)
    [row] = world.rows(1)
    assert row["cache_control"] == "max-age=60, no-store"
    assert row["cache_evidence"]["bypass"] == "header"
