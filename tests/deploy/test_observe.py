"""The files that put metrics, traces and dashboards beside the planner."""

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

from warmup_lib.observe.exposition import prometheus_name
from warmup_lib.observe.figures import DESCRIPTIONS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "observe"
FILES = [ROOT / "docker-compose.yaml", ROOT / "deploy" / "compose.observe.yaml"]
COLLECTOR = FOLDER / "otel-collector.yaml"
WITHOUT_SHELL = {"otel-collector", "jaeger"}
MEASURED = {
    "cache_hits_total",
    "cache_misses_total",
    "cache_lookup_duration_seconds_bucket",
    "warmup_batch_duration_seconds_bucket",
    "warmup_verified_timestamp_seconds",
    *(prometheus_name(name) for name in DESCRIPTIONS),
}
KNOWN_EXPORTER_SETTINGS = {"endpoint", "headers", "target_info", "tls", "remote_write_queue"}
"""Of those that the exporter's documentation names, what is used or likely to be."""


def tool(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        pytest.fail(f"{name} is not installed: `make test` installs it on Debian")
    return program


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    program = tool("docker-compose")
    text = FILES[0].read_text("utf-8") + FILES[1].read_text("utf-8")
    values = dict.fromkeys(re.findall(r"\$\{([A-Z_]+):\?", text), "0f0f")
    files = [part for file in FILES for part in ("-f", str(file))]
    done = subprocess.run(
        [program, *files, "config"],
        env={"PATH": os.environ["PATH"], "HOME": "/", **values},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)["services"]
    return found


def test_the_rules_are_valid_and_do_what_their_tests_say() -> None:
    promtool = tool("promtool")
    for arguments in (
        ["check", "config", "prometheus.yaml"],
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "rules.test.yaml"],
    ):
        done = subprocess.run(
            [promtool, *arguments], capture_output=True, text=True, check=False, cwd=FOLDER
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    rules = yaml.safe_load((FOLDER / "rules.yaml").read_text("utf-8"))
    alerts = {r["alert"] for g in rules["groups"] for r in g["rules"] if "alert" in r}
    tests = yaml.safe_load((FOLDER / "rules.test.yaml").read_text("utf-8"))["tests"]
    fired = {
        case["alertname"]
        for test in tests
        for case in test.get("alert_rule_test", [])
        if case.get("exp_alerts")
    }
    assert alerts == fired


def queries(text: str) -> set[str]:
    return set(re.findall(r"\b((?:cache|warmup)_[a-z_]+?)(?=[\s({\[)]|$)", text))


def test_rules_and_dashboard_ask_only_for_what_is_measured() -> None:
    rules = yaml.safe_load((FOLDER / "rules.yaml").read_text("utf-8"))
    dashboard = json.loads((FOLDER / "grafana" / "warmup.json").read_text("utf-8"))
    asked = [r["expr"] for g in rules["groups"] for r in g["rules"]]
    asked += [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
    recorded = {r["record"] for g in rules["groups"] for r in g["rules"] if "record" in r}
    found: set[str] = set()
    for expression in asked:
        bare = re.sub(r"\{[^}]*\}|(?:by|on|group_left) \([^)]*\)", " ", expression)
        for name in recorded:
            bare = bare.replace(name, " ")
        assert queries(bare) <= MEASURED, expression
        found |= queries(bare)
    assert {"cache_hits_total", "warmup_completion", "warmup_forecast_realised"} <= found
    links = yaml.safe_load((FOLDER / "grafana" / "datasources.yaml").read_text("utf-8"))
    [prometheus, jaeger] = links["datasources"]
    assert prometheus["jsonData"]["exemplarTraceIdDestinations"] == [
        {"name": "trace_id", "datasourceUid": jaeger["uid"]}
    ]


def test_the_collector_writes_with_an_authorisation_from_the_environment() -> None:
    config = yaml.safe_load(COLLECTOR.read_text("utf-8"))
    write = config["exporters"]["prometheusremotewrite"]
    assert write["headers"]["Authorization"] == "${env:REMOTE_WRITE_AUTHORIZATION}"
    assert set(write) <= KNOWN_EXPORTER_SETTINGS
    assert config["service"]["pipelines"]["metrics"]["exporters"] == ["prometheusremotewrite"]
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(config[kind])


def test_compose_gives_the_collector_all_that_its_file_asks_for(services: dict[str, Any]) -> None:
    asked = set(re.findall(r"\$\{env:([A-Z_]+)\}", COLLECTOR.read_text("utf-8")))
    assert asked == set(services["otel-collector"]["environment"])
    for name in ("airflow-worker", "airflow-worker-gpu"):
        pushed = services[name]["environment"]
        assert pushed["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://otel-collector:4318"
        assert pushed["WARMUP_SECRET"], "the override must add to a worker, not replace it"


def test_prometheus_keeps_exemplars_and_takes_remote_writes(services: dict[str, Any]) -> None:
    command = services["prometheus"]["command"]
    assert "--enable-feature=exemplar-storage" in command
    assert "--web.enable-remote-write-receiver" in command
    scraped = yaml.safe_load((FOLDER / "prometheus.yaml").read_text("utf-8"))["scrape_configs"]
    [target] = scraped[0]["static_configs"][0]["targets"]
    name, port = target.split(":")
    assert services[name]["command"].endswith(f"--listen 0.0.0.0:{port}")


def test_services_beside_the_planner_come_back_and_are_open_here_alone(
    services: dict[str, Any],
) -> None:
    ours = yaml.safe_load(FILES[1].read_text("utf-8"))["services"]
    for name in ours.keys() - {"airflow-worker", "airflow-worker-gpu"}:
        service = services[name]
        assert service["restart"] == "unless-stopped"
        assert ("healthcheck" in service) is (name not in WITHOUT_SHELL)
        assert all(str(p).startswith("127.0.0.1:") for p in service.get("ports", []))
        for mount in service.get("volumes", []):
            source = str(mount).split(":")[0]
            if source.startswith("/") and "deploy" in source:
                assert Path(source).exists(), source
