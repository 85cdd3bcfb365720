from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from warmup_lib.config import Config, HostTarget, RedisTarget, load_config

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yaml"
OBSERVE = ROOT / "deploy" / "compose.observe.yaml"
EXAMPLE = ROOT / "deploy" / "compose.env.example"
SECRETS = [
    "AIRFLOW_ADMIN_PASSWORD",
    "AIRFLOW_FERNET_KEY",
    "AIRFLOW_JWT_SECRET",
    "BROKER_PASSWORD",
    "CACHE_PASSWORD",
    "POSTGRES_PASSWORD",
    "VLLM_API_KEY",
    "WARMUP_SECRET",
]
VALUES = {name: f"0f{n:030x}" for n, name in enumerate(SECRETS)}


def compose(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("docker-compose")
    if program is None:
        pytest.fail("docker-compose is not installed: `make test` installs it on Debian")
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.run(
        [program, "-f", str(FILE), *arguments],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


@pytest.fixture(scope="module")
def resolved() -> dict[str, Any]:
    """Return the services as Compose itself reads them."""
    done = compose("config", **VALUES)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    services: dict[str, Any] = yaml.safe_load(done.stdout)["services"]
    return services


def queues(command: Any) -> set[str]:
    words = command.split() if isinstance(command, str) else command
    return set(words[words.index("--queues") + 1].split(","))


def test_compose_accepts_the_file_and_knows_all_parts(resolved: dict[str, Any]) -> None:
    assert set(resolved) == {
        "postgres",
        "broker",
        "cache",
        "airflow-init",
        "airflow-apiserver",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
        "airflow-worker",
        "airflow-worker-gpu",
        "vllm-cpu",
        "vllm-gpu",
    }


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_that_is_not_set_stops_compose_and_is_not_guessed(name: str) -> None:
    done = compose("config", **{k: v for k, v in VALUES.items() if k != name})
    assert done.returncode != 0
    assert "set it in .env" in done.stderr


def test_the_example_names_every_variable_with_its_default_and_no_secret() -> None:
    text = FILE.read_text(encoding="utf-8") + OBSERVE.read_text(encoding="utf-8")
    used = dict(re.findall(r"(?<!\$)\$\{([A-Z_]+):[-?]([^}]*)\}", text))
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    named = [(m[1], m[2]) for line in lines if (m := re.match(r"(?:# )?([A-Z_]+)=(.*)", line))]
    assert set(used) | {"COMPOSE_PROFILES"} == {name for name, _ in named}
    for name in [*SECRETS, "GRAFANA_PASSWORD"]:
        assert (name, "") in named
        used.pop(name)
    assert set(used.items()) <= set(named)


def test_every_secret_is_asked_for_and_none_is_in_the_file() -> None:
    text = FILE.read_text(encoding="utf-8")
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", text))
    assert asked == set(SECRETS)
    assert [v for v in re.findall(r"\$\{([A-Z_]+)(?!:\?|[A-Z_])", text) if v in SECRETS] == []


def test_every_lasting_service_has_a_health_check_and_comes_back(resolved: dict[str, Any]) -> None:
    for name, service in resolved.items():
        if name != "airflow-init":
            assert service["healthcheck"]["test"], name
            assert service["restart"] == "unless-stopped", name


def test_ports_are_open_on_this_machine_alone(resolved: dict[str, Any]) -> None:
    ports = [str(p) for service in resolved.values() for p in service.get("ports", [])]
    assert len(ports) == 4
    assert all(p.startswith("127.0.0.1:") for p in ports)


def test_the_queue_of_the_gpu_tasks_has_a_worker_in_both_profiles(resolved: dict[str, Any]) -> None:
    gpu = Config().schedule.gpu_queue
    assert queues(resolved["airflow-worker"]["command"]) == {"default", gpu}
    assert queues(resolved["airflow-worker-gpu"]["command"]) == {gpu}
    split = yaml.safe_load(compose("config", WARMUP_QUEUES="default", **VALUES).stdout)
    assert queues(split["services"]["airflow-worker"]["command"]) == {"default"}


def test_the_gpu_profile_reserves_a_gpu(resolved: dict[str, Any]) -> None:
    for name in ("airflow-worker-gpu", "vllm-gpu"):
        (device,) = resolved[name]["deploy"]["resources"]["reservations"]["devices"]
        assert (device["driver"], device["count"], device["capabilities"]) == ("nvidia", 1, ["gpu"])
    raw = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]
    profiles = {name: s["profiles"] for name, s in raw.items() if "profiles" in s}
    assert profiles == {
        "airflow-worker-gpu": ["gpu"],
        "vllm-gpu": ["gpu"],
        "vllm-cpu": ["cpu"],
    }


def test_the_cache_is_not_the_broker(resolved: dict[str, Any]) -> None:
    environment = resolved["airflow-worker"]["environment"]
    cache = json.loads(environment["AIRFLOW_CONN_WARMUP_CACHE"])
    broker = environment["AIRFLOW__CELERY__BROKER_URL"]
    assert cache["host"] == "cache"
    assert "@broker:6379" in broker
    assert resolved["cache"]["image"] == "redis:8"


def test_the_settings_name_connections_that_compose_defines(
    resolved: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    config = load_config(ROOT / "deploy" / "compose.warmup.yaml")
    targets = [t for t in config.targets if isinstance(t, RedisTarget | HostTarget)]
    assert [t.kind for t in targets] == ["redis", "host"]
    for service in ("airflow-worker", "airflow-worker-gpu"):
        defined = resolved[service]["environment"]
        for target in targets:
            assert f"AIRFLOW_CONN_{(target.connection or '').upper()}" in defined


def test_the_init_service_makes_the_pool_that_the_tasks_ask_for(resolved: dict[str, Any]) -> None:
    assert "airflow pools import /opt/warmup/pools.json" in " ".join(
        resolved["airflow-init"]["command"]
    )
    mounts = resolved["airflow-init"]["volumes"]
    assert any("deploy/pools.json" in str(m) and "/opt/warmup/pools.json" in str(m) for m in mounts)
    pools = json.loads((ROOT / "deploy" / "pools.json").read_text(encoding="utf-8"))
    assert pools[Config().schedule.gpu_pool]["slots"] == 1


def test_the_image_is_built_from_what_its_context_holds() -> None:
    copied = re.findall(
        r"^COPY \S+ (.*) \S+$", (ROOT / "deploy" / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    names = {name for line in copied for name in line.split()}
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    assert names == kept
    assert all((ROOT / name).exists() for name in names)


def test_the_image_has_the_airflow_that_is_tested() -> None:
    base = re.search(
        r"^FROM apache/airflow:(\S+)-python3\.11$",
        (ROOT / "deploy" / "Dockerfile").read_text("utf-8"),
        re.MULTILINE,
    )
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert base
    assert f"apache-airflow=={base[1]}" in pins
