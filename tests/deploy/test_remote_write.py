"""The collector's remote write as its file has it, sent to a real Prometheus that asks for a login.

No package on PyPI, npm or Debian holds a collector with that exporter, so its one request is made
here: the file's address and headers, with the environment put in, around one sample.
"""

from __future__ import annotations

import base64
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from warmup_lib.stack.process import free_port

COLLECTOR = Path(__file__).parents[2] / "deploy" / "observe" / "otel-collector.yaml"
USER, PASSWORD = "warmup", "of-tests"
HASHED = "$2b$04$5EOtElRLBxv79w4A6o0LbuNgwb1uigK9Lmm2zwYovtcCDrOgCMy2q"
LOGIN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("prometheus")
    if program is None:
        pytest.fail("prometheus is not installed: `make test` installs it on Debian")
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "prometheus.yaml").write_text("{}")
    (folder / "web.yaml").write_text(yaml.safe_dump({"basic_auth_users": {USER: HASHED}}))
    url = f"http://127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [
            program,
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--web.config.file={folder / 'web.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={url.removeprefix('http://')}",
            "--web.enable-remote-write-receiver",
            "--log.level=error",
        ]
    )
    try:
        until = time.monotonic() + 60
        while not ready(url):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", headers={"authorization": LOGIN}).status_code == 200
    except httpx.TransportError:
        return False


def field(number: int, data: bytes) -> bytes:
    """Return a length-delimited field of a protobuf message."""
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def write_request(name: str, value: float) -> bytes:
    """Return a WriteRequest of one sample, in Snappy's block format as one literal."""
    label = field(1, b"__name__") + field(2, name.encode())
    at = varint(int(time.time() * 1000))
    sample = bytes([1 << 3 | 1]) + struct.pack("<d", value) + bytes([2 << 3]) + at
    message = field(1, field(1, label) + field(2, sample))
    return bytes([len(message), (len(message) - 1) << 2]) + message


def written(url: str, login: str) -> int:
    """Send one sample as the collector's file says; return the status."""
    environment = {"REMOTE_WRITE_URL": f"{url}/api/v1/write", "REMOTE_WRITE_AUTHORIZATION": login}
    text = re.sub(
        r"\$\{env:([A-Z_]+)\}",
        lambda found: environment.get(found[1], ""),
        COLLECTOR.read_text("utf-8"),
    )
    write = yaml.safe_load(text)["exporters"]["prometheusremotewrite"]
    fixed = {
        "content-encoding": "snappy",
        "content-type": "application/x-protobuf",
        "x-prometheus-remote-write-version": "0.1.0",
    }
    body = write_request("warmup_completion", 0.75)
    return httpx.post(write["endpoint"], content=body, headers=write["headers"] | fixed).status_code


def test_the_login_of_the_environment_is_taken(prometheus: str) -> None:
    assert written(prometheus, LOGIN) == 204
    answer = httpx.get(
        f"{prometheus}/api/v1/query",
        params={"query": "warmup_completion"},
        headers={"authorization": LOGIN},
    )
    [series] = answer.json()["data"]["result"]
    assert float(series["value"][1]) == 0.75


@pytest.mark.parametrize("login", ["", "Basic d3Jvbmc6d3Jvbmc=", "Bearer token"])
def test_any_other_login_is_refused(prometheus: str, login: str) -> None:
    assert written(prometheus, login) == 401
