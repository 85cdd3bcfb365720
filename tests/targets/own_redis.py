"""A Redis of one's own, for what would disturb the tests that share one: limits, TLS, logins."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from warmup_lib.stack.process import free_port

PATIENCE_S = 20.0


def embedded(artifacts: Path) -> list[str]:
    """Return how the embedded server is called, with its search module."""
    folder = artifacts / "redis"
    return [str(folder / "redis-server"), "--loadmodule", str(folder / "redisearch.so")]


@contextmanager
def own_redis(
    program: list[str], folder: Path, *settings: str, tls: bool = False, query: str = ""
) -> Iterator[str]:
    """Run a server in memory only and give its URL.

    Args:
        program: The server and what comes first on its command line.
        folder: Where it runs.
        settings: More of the command line.
        tls: It answers by TLS only.
        query: What the URL ends with.
    """
    port = free_port()
    ports = ["--port", "0", "--tls-port", str(port)] if tls else ["--port", str(port)]
    log = folder / f"redis-{port}.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*program, *ports, "--bind", "127.0.0.1", "--save", "", *settings],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"{'rediss' if tls else 'redis'}://127.0.0.1:{port}/0{query}"
    try:
        _wait(url, server, log)
        yield url
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    with redis.Redis.from_url(url) as client:
        while True:
            try:
                client.ping()
                return
            except redis.AuthenticationError:
                return
            except redis.ConnectionError:
                assert server.poll() is None, log.read_text(encoding="utf-8", errors="replace")
                assert time.monotonic() < deadline
                time.sleep(0.05)
