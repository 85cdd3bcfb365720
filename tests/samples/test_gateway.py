"""The example gateway before the real stack: started cold, then again after an apply."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families

from warmup_lib.evidence import FIELD, Evidence
from warmup_lib.keys import Keys
from warmup_lib.reader.mirror import MIRROR
from warmup_lib.stack.state import StackState

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.host
TENANT = "acme-gateway"
RULE = "answer politely, briefly and only about our cards."
SYSTEM = " ".join(f"Rule {n}: {RULE}" for n in range(40))
KINDS = ("gold", "silver", "student", "joint")
QUESTIONS = [f"What does the {kind} card cost?" for kind in KINDS]
CHAT = "/v1/chat/completions"


class Bench:
    """One folder with settings, and what runs in it under one secret."""

    def __init__(self, folder: Path, home: Path, secret: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.log = folder / "requests.jsonl"
        self.env = os.environ | {"WARMUP_HOME": str(home), "WARMUP_SECRET": secret}
        self.env |= {"PYTHONPATH": str(ROOT), "GATEWAY_LOG": str(self.log), "GATEWAY_MIRROR": "1"}
        off = {"weights": {"enabled": False}, "adapters": {"enabled": False}}
        (folder / "warmup.yaml").write_text(json.dumps({"layers": off}))

    def warmup(self, *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "warmup_lib.cli", *arguments, "--json"],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    @contextmanager
    def gateway(self) -> Iterator[httpx.Client]:
        """Run a gateway process of its own; it must end by itself when it is told to."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        argv = ["uvicorn", "--factory", "samples.gateway:create_app", "--port", str(port)]
        said = (self.folder / "gateway.log").open("a+")
        with (
            said,
            subprocess.Popen(
                [sys.executable, "-m", *argv],
                cwd=self.folder,
                env=self.env,
                stdout=said,
                stderr=said,
            ) as process,
        ):
            try:
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
                    answers(client, process)
                    yield client
            finally:
                process.terminate()
                assert process.wait(30) in (0, -15)
        told = (self.folder / "gateway.log").read_text()
        assert not [text for text in (SYSTEM, *QUESTIONS) if text in told]
        assert "Traceback" not in told, told

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def answers(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None
        try:
            client.get("/metrics/")
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the gateway does not answer")


def ask(client: httpx.Client, model: str, text: str, **more: Any) -> httpx.Response:
    headers = {"x-tenant": TENANT, "authorization": "Bearer s3cret", "x-request-id": "r-1"}
    headers |= more.pop("headers", {})
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
    body = {"model": model, "messages": messages, "max_tokens": 6, "temperature": 0}
    return client.post(CHAT, json=body | more, headers=headers)


def metrics(client: httpx.Client) -> dict[tuple[str, str], float]:
    """Return hits, misses and first tokens of the answers, as the gateway itself counts them."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(client.get("/metrics/").text):
        for sample in family.samples:
            if sample.labels.get("warmup_layer") == "responses" and "cache_" in sample.name:
                name = sample.name.removesuffix("_total")
                found[name, "responses"] = found.get((name, "responses"), 0) + sample.value
            elif sample.name.startswith("gateway_first_token") and "bucket" not in sample.name:
                kind = sample.name.rsplit("_", 1)[1]
                found[kind, sample.labels["served_from"]] = sample.value
    return found


def test_restarted_warm_it_serves_what_it_missed_cold_and_its_metrics_say_so(
    stack_host: StackState, stack_home: Path, tmp_path: Path
) -> None:
    model = stack_host.hosts[0].model or ""
    cold = Bench(tmp_path / "cold", stack_home, secrets.token_hex(16))
    warm = Bench(tmp_path / "warm", stack_home, secrets.token_hex(16))
    with cold.gateway() as client:
        first = [ask(client, model, question).json() for question in QUESTIONS]
        before = metrics(client)
        again = ask(client, model, QUESTIONS[0], stream=True)
        assert first[0]["choices"][0]["message"]["content"] in again.text
        assert ask(client, model, "x", headers={"x-tenant": "*"}).status_code == 400
        assert ask(client, "no-such-model", "x").status_code == 404
        around = ask(client, model, QUESTIONS[0], headers={"cache-control": "no-cache"})
        assert around.json()["usage"]["prompt_tokens"] > 300
    day = cold.rows()[0]["ts"][:10]

    # The cold gateway's log is what the planner learns from; another secret hides what it left.
    found = warm.warmup("ingest", "--format", "jsonl", str(cold.log))
    assert (found["rows_quarantined"], found["rows_kept"]) == (0, len(cold.rows()))
    warm.warmup("plan", "--day", day)
    applied = warm.warmup("apply", "--plan", "latest")
    assert applied["completion"]["responses"]["redis"]["done"] >= len(QUESTIONS)

    with warm.gateway() as client:
        second = [ask(client, model, question).json() for question in QUESTIONS]
        after = metrics(client)
        fresh = ask(client, model, "Which card is the best one for a holiday?").json()
    said = [[one["choices"][0]["message"]["content"] for one in run] for run in (first, second)]
    assert said[0] == said[1]
    count = len(QUESTIONS)
    assert (before["cache_misses", "responses"], after["cache_hits", "responses"]) == (count, count)
    assert before.get(("cache_hits", "responses"), 0) == 0
    assert after.get(("cache_misses", "responses"), 0) == 0
    assert (before["count", "host"], after["count", "responses"]) == (count, count)
    waited = before["sum", "host"] / count, after["sum", "responses"] / count
    print(f"first token, mean of {count}: cold {waited[0]:.3f} s, warm {waited[1]:.3f} s")
    assert waited[1] < waited[0] / 4
    # A new question finds its head warm on the host, where the first one of the cold run did not.
    assert cold.rows()[0].get("cached_tokens", 0) == 0
    assert fresh["usage"]["prompt_tokens_details"]["cached_tokens"] > 300
    told_of(cold, stack_host)
    told_of(warm, stack_host)
    found = warm.warmup("ingest", "--format", "jsonl", str(warm.log))
    assert (found["rows_quarantined"], found["rows_kept"]) == (0, count + 1)


def told_of(bench: Bench, stack: StackState) -> None:
    """What the rows and the mirror tell: looks and host, and no login."""
    assert "s3cret" not in bench.log.read_text()
    keys = Keys(bench.env["WARMUP_SECRET"].encode())
    for row in bench.rows():
        evidence = Evidence.from_dict(row[FIELD])
        assert evidence.secret_id == keys.secret_id
        assert (row["status"], row["tenant"]) in ((200, TENANT), (404, TENANT))
        assert row["ttft_ms"] <= row["latency_ms"]
        if row.get("served_from") is None:
            assert evidence.host == stack.hosts[0].name
            assert evidence.host_epoch
            assert len(evidence.salt or "") == 16
    assert stack.redis is not None
    with redis.Redis.from_url(stack.redis.url) as client:
        copied = [fields for _, fields in client.xrange(MIRROR)]
    assert b"s3cret" not in b"".join(v for one in copied for v in one.values())
    held = [json.loads(one[b"body"])["messages"][1]["content"] for one in copied]
    assert set(QUESTIONS) <= set(held)
    assert set(json.loads(copied[0][b"headers"])) <= {"x-tenant", "content-type", "cache-control"}
