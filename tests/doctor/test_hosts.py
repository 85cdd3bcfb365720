"""What the doctor says of model hosts: a real one, and ones that do one thing wrong."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from warmup_lib.cli import main
from warmup_lib.stack import StackState

Change = Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]] | None]
BLOCK = 16


def tokens_of(body: dict[str, Any]) -> list[int]:
    text = body.get("prompt") or " ".join(m["content"] for m in body["messages"])
    return [sum(word.encode()) for word in text.split()]


class Fake:
    """A host with a cache of whole blocks for each salt, which a test can make go wrong."""

    def __init__(self) -> None:
        self.change: Change = lambda _path, _body: None
        self.cached: dict[str | None, list[list[int]]] = {}
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._say(*fake.get(self.path))

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                self._say(*fake.post(self.path, json.loads(raw)))

            def _say(self, status: int, body: Any) -> None:
                raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def get(self, path: str) -> tuple[int, Any]:
        if changed := self.change(path, {}):
            return changed
        if path == "/metrics":
            return 200, f'vllm:cache_config_info{{block_size="{BLOCK}",num_gpu_blocks="4"}} 1.0\n'
        if path == "/v1/models":
            return 200, {"data": [{"id": "m", "max_model_len": 4096}]}
        return (200, "") if path == "/health" else (404, {})

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if changed := self.change(path, body):
            return changed
        tokens = tokens_of(body)
        if path == "/tokenize":
            return 200, {"tokens": tokens}
        return 200, self.answer(tokens, body.get("cache_salt"), len(tokens))

    def answer(self, tokens: list[int], salt: str | None, length: int) -> dict[str, Any]:
        held = self.cached.setdefault(salt, [])
        most = max((_shared(tokens, other) for other in held), default=0) // BLOCK * BLOCK
        held.append(tokens)
        details = {"cached_tokens": most}
        usage = {"prompt_tokens": length, "prompt_tokens_details": details}
        return {"choices": [{"message": {"content": "."}, "finish_reason": "stop"}], "usage": usage}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _shared(one: list[int], other: list[int]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


@pytest.fixture
def fake() -> Iterator[Fake]:
    fake = Fake()
    yield fake
    fake.close()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def look(url: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(main, ["doctor", "--json", "--host", url, *arguments])
    told: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, told


def found(told: dict[str, Any]) -> dict[str, str]:
    return {n: t["evidence"] for n, t in told["traps"].items() if t["status"] == "found"}


def test_a_sound_host_has_no_trap(fake: Fake) -> None:
    code, told = look(fake.url)
    assert code == 0
    assert {name: trap["status"] for name, trap in told["traps"].items()} == {
        "weight_shards": "not_checked",
        "tokenisation": "ok",
        "kv_length": "ok",
        "tenant": "ok",
        "bypass": "not_checked",
        "key_dimensions": "not_checked",
        "out_of_step": "ok",
    }


def test_a_host_that_pads_to_one_length_is_found(fake: Fake) -> None:
    def padded(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if path != "/v1/chat/completions":
            return None
        return 200, fake.answer(tokens_of(body), body.get("cache_salt"), 2048)

    fake.change = padded
    told = found(look(fake.url)[1])
    assert told["kv_length"] == "prompts of 3 lengths are all served as 2,048 tokens"
    assert set(told) == {"kv_length", "tokenisation"}


def test_a_host_that_cuts_prompts_is_found(fake: Fake) -> None:
    def cut(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        tokens = tokens_of(body) if body else []
        if path != "/v1/chat/completions" or len(tokens) < 300:
            return None
        return 200, fake.answer(tokens, body.get("cache_salt"), 256)

    fake.change = cut
    assert found(look(fake.url)[1]) == {
        "tokenisation": "the host takes prompts for other lengths: 256 for 360 tokens"
    }


def test_tokens_that_change_from_call_to_call_are_found(fake: Fake) -> None:
    calls = iter(range(1000))

    def drifting(path: str, _: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        return (200, {"tokens": [next(calls), 2]}) if path == "/tokenize" else None

    fake.change = drifting
    told = found(look(fake.url)[1])
    assert told["tokenisation"] == "the host gives one text different tokens"


def test_a_host_without_a_prefix_cache_is_found(fake: Fake) -> None:
    def bare(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if path != "/v1/chat/completions":
            return None
        fake.cached.clear()
        tokens = tokens_of(body)
        return 200, fake.answer(tokens, None, len(tokens))

    fake.change = bare
    code, told = look(fake.url)
    assert "is not found again at once" in found(told)["kv_length"]
    assert told["traps"]["tenant"]["status"] == "not_checked"
    assert code == 1


def test_a_host_that_ignores_salts_is_found(fake: Fake) -> None:
    def deaf(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if path != "/v1/chat/completions":
            return None
        tokens = tokens_of(body)
        return 200, fake.answer(tokens, None, len(tokens))

    fake.change = deaf
    told = found(look(fake.url)[1])
    assert set(told) == {"tenant"}
    assert "were found under another's" in told["tenant"]


def test_a_host_that_becomes_ready_while_it_is_asked_is_measured(fake: Fake) -> None:
    until = time.monotonic() + 0.6

    def starting(path: str, _: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        return (503, {}) if path == "/health" and time.monotonic() < until else None

    fake.change = starting
    code, told = look(fake.url)
    assert "ms after it was first asked (/health answers 503)" in found(told)["out_of_step"]
    assert told["traps"]["kv_length"]["status"] == "ok"
    assert (code, told["down"]) == (1, [])


def test_a_host_that_is_not_ready_is_found_and_asked_nothing_else(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warmup_lib.doctor.examine.WAIT_S", 0.2)
    fake.change = lambda path, _: (503, {}) if path == "/health" else None
    code, told = look(fake.url)
    assert set(found(told)) == {"out_of_step"}
    assert told["traps"]["tenant"]["status"] == "not_checked"
    assert (code, told["down"]) == (1, ["the host is down: /health answers 503"])


def test_a_host_that_is_down_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warmup_lib.doctor.examine.WAIT_S", 0.2)
    code, told = look("http://127.0.0.1:1")
    assert {t["status"] for t in told["traps"].values()} == {"not_checked"}
    assert told["traps"]["out_of_step"]["evidence"] == "the host is down: no connection"
    assert code == 1


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "http://"])
def test_an_address_that_is_none_is_a_sentence(url: str) -> None:
    done = CliRunner().invoke(main, ["doctor", "--host", url])
    assert done.exit_code == 2
    assert "url" in done.output


@pytest.mark.host
def test_the_embedded_host_is_sound_and_has_its_folders_tokenizer(
    stack_host: StackState, stack_artifacts: Path
) -> None:
    model = str(stack_artifacts / "model")
    code, told = look(stack_host.hosts[0].url, "--model-dir", model)
    assert not found(told)
    assert code == 0
    for trap in ("weight_shards", "tokenisation", "kv_length", "tenant", "out_of_step"):
        assert told["traps"][trap]["status"] == "ok", told["traps"][trap]
    assert "host and folder have the same tokenizer" in told["traps"]["tokenisation"]["evidence"]


@pytest.mark.host
def test_a_folder_with_another_tokenizer_is_found(
    stack_host: StackState, stack_artifacts: Path, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    other = tmp_path / "other"
    other.mkdir()
    for file in (stack_artifacts / "model").iterdir():
        (other / file.name).symlink_to(file)
    (other / "tokenizer.json").unlink()
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(other / "tokenizer.json"))
    told = found(look(stack_host.hosts[0].url, "--model-dir", str(other))[1])
    assert set(told) == {"tokenisation"}
    assert "other tokens on the host than in the folder" in told["tokenisation"]
