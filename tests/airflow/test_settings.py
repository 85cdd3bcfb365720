from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from warmup_lib.config import key_secret
from warmup_lib.errors import ConfigError

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]

SECRET = "0123456789abcdef0123456789abcdef"
TARGETS = """
targets:
  - {kind: redis, name: cache, connection: warmup_cache}
  - {kind: redis, name: plain, url: "redis://10.0.0.1:6379/1"}
  - {kind: host, name: gpu-1, connection: warmup_host}
"""


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "warmup.yaml"
    file.write_text(TARGETS)
    monkeypatch.setenv("WARMUP_CONFIG", str(file))
    monkeypatch.setenv("WARMUP_SECRET", "from the environment")
    monkeypatch.setenv("WARMUP_API_KEY_GPU_1", "")
    return file


def connection(monkeypatch: pytest.MonkeyPatch, name: str, **fields: object) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(fields))


@pytest.mark.usefixtures("config_file")
def test_connections_give_addresses_logins_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    from warmup_lib.airflow.settings import task_config

    connection(
        monkeypatch,
        "warmup_cache",
        conn_type="redis",
        host="cache.internal",
        port=6380,
        login="planner",
        password="p@s/s:word",
        extra={"ssl": True, "db": 3},
    )
    connection(
        monkeypatch,
        "warmup_host",
        conn_type="http",
        host="gpu.internal",
        port=8000,
        password="token",
    )
    config = task_config()
    assert [t.url for t in config.targets if t != "embedded"] == [
        "rediss://planner:p%40s%2Fs%3Aword@cache.internal:6380/3",
        "redis://10.0.0.1:6379/1",
        "http://gpu.internal:8000",
    ]
    host = config.targets[2]
    assert host.api_key_env == "WARMUP_API_KEY_GPU_1"
    assert os.environ["WARMUP_API_KEY_GPU_1"] == "token"
    assert key_secret(config) == b"from the environment"


@pytest.mark.usefixtures("config_file")
def test_a_choice_of_targets_needs_the_connections_of_these_alone() -> None:
    from warmup_lib.airflow.settings import target_names, task_config

    assert target_names(task_config(["plain"])) == ["plain"]


@pytest.mark.usefixtures("config_file")
def test_a_missing_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from warmup_lib.airflow.settings import task_config

    connection(monkeypatch, "warmup_host", conn_type="http", host="gpu.internal")
    with pytest.raises(ConfigError, match=r"'cache' names .* 'warmup_cache', which is not defined"):
        task_config()


def test_the_secret_connection_is_the_key_secret(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warmup_lib.airflow.settings import task_config

    config_file.write_text("targets: embedded\n")
    connection(monkeypatch, "warmup_secret", conn_type="generic", password=SECRET)
    config = task_config()
    assert config.targets == "embedded"
    assert key_secret(config) == SECRET.encode()
    assert SECRET not in config.model_dump_json()


@pytest.mark.parametrize(
    ("uri", "url"),
    [
        ("http://models:8000", "http://models:8000"),
        ("https://models.example", "https://models.example"),
        ('{"conn_type": "http", "schema": "https", "host": "m", "port": 1}', "https://m:1"),
        ('{"conn_type": "http", "host": "https://m.example/"}', "https://m.example"),
    ],
)
def test_the_ways_to_write_an_http_connection(
    uri: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk import BaseHook

    from warmup_lib.airflow.settings import http_url

    monkeypatch.setenv("AIRFLOW_CONN_ONE", uri)
    assert http_url(BaseHook.get_connection("one")) == url


def test_a_bare_redis_connection_is_the_first_database_on_the_usual_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from airflow.sdk import BaseHook

    from warmup_lib.airflow.settings import redis_url

    monkeypatch.setenv("AIRFLOW_CONN_ONE", "redis://cache")
    assert redis_url(BaseHook.get_connection("one")) == "redis://cache:6379/0"
