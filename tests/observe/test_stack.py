"""Planner, Redis, reader and Prometheus together: what it answers is what the lake holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.observe.world import LATER_DAY, TENANTS, WORD, World, night
from warmup_lib import pipeline
from warmup_lib.stack.process import free_port
from warmup_lib.stack.state import StackState

pytestmark = pytest.mark.stack

RULES = Path(__file__).parents[2] / "deploy" / "observe" / "rules.yaml"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture(scope="module")
def world(stack_redis: StackState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    assert stack_redis.redis is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARMUP_SECRET", "the secret of the observed world")
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-tests")
        with night(tmp_path_factory.mktemp("observed"), stack_redis.redis.url) as world:
            yield world


@pytest.fixture(scope="module")
def exporter(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where a `warmup metrics` of its own process answers."""
    file = tmp_path_factory.mktemp("settings") / "warmup.yaml"
    file.write_text(yaml.safe_dump(world.config.model_dump(mode="json", exclude_unset=True)))
    listen = f"127.0.0.1:{free_port()}"
    with running(
        [sys.executable, "-m", "warmup_lib.cli", "metrics", "--config", str(file),
         "--listen", listen], f"http://{listen}/metrics"):  # fmt: skip
        yield listen


@pytest.fixture(scope="module")
def query(
    world: World, exporter: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Any]]:
    """Ask a real Prometheus that scrapes both under the rules that are deployed."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.fail("prometheus is not installed: `make test` installs it on Debian")
    folder = tmp_path_factory.mktemp("prometheus")
    jobs = {"warmup-gateway": world.gateway, "warmup-metrics": exporter}
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [place]}]}
            for job, place in jobs.items()
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
    url = f"http://127.0.0.1:{free_port()}"
    with (
        running(
            [
                program,
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                "--enable-feature=exemplar-storage",
                f"--web.listen-address={url.removeprefix('http://')}",
                "--log.level=error",
            ],
            f"{url}/-/ready",
        ),  # fmt: skip
        httpx.Client(base_url=f"{url}/api/v1", timeout=30) as client,
    ):

        def ask(kind: str, **parameters: Any) -> Any:
            answer = client.get(f"/{kind}", params=parameters).json()
            assert answer["status"] == "success", answer
            return answer["data"]

        until = time.monotonic() + 60
        while len(ask("query", query="up == 1")["result"]) < len(jobs):
            assert time.monotonic() < until, ask("targets")
            time.sleep(0.2)
        yield ask


@contextmanager
def running(command: list[str], url: str) -> Iterator[None]:
    """Run a program that answers at a URL once it is up."""
    process = subprocess.Popen(command, env=os.environ.copy())
    try:
        until = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(url, timeout=5):
                    break
            except OSError:
                assert process.poll() is None, f"it ended before it answered at {url}"
                assert time.monotonic() < until, f"no answer at {url}"
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        ended = process.wait(timeout=30)
    assert ended in (0, -15)


def by(result: Any, *names: str) -> dict[Any, float]:
    found = {}
    for series in result["result"]:
        place = tuple(series["metric"].get(name, "") for name in names)
        found[place[0] if len(names) == 1 else place] = float(series["value"][1])
    return found


def test_what_prometheus_says_of_a_plan_is_what_verify_said(
    world: World, query: Callable[..., Any]
) -> None:
    completion = by(query("query", query="warmup_completion"), "warmup_layer", "cache_backend")
    said = world.verified["completion"]
    assert completion == {
        (layer, target): counts["completion"]
        for layer, targets in said.items()
        for target, counts in targets.items()
    }
    assert {"embeddings", "responses"} <= {layer for layer, _ in completion}
    ratios = by(query("query", query='warmup_window_hit_ratio{warmup_tier=""}'), "warmup_layer")
    expected = {layer: one["overall"] for layer, one in world.verified["hit_ratio"].items()}
    assert ratios == pytest.approx(expected)
    assert 0 < ratios["responses"] < 1
    tenants = by(query("query", query="warmup_tenant_hits"), "warmup_layer", "warmup_tenant")
    keys = pipeline.open_keys(world.config)
    for tenant in TENANTS:
        requests = by(query("query", query="warmup_tenant_requests{warmup_layer='responses',"
                            f"warmup_tenant='{keys.scope(tenant)}'}}"), "warmup_layer")  # fmt: skip
        ratio = tenants["responses", keys.scope(tenant)] / requests["responses"]
        assert ratio == world.verified["hit_ratio"]["responses"]["tenants"][tenant]


def test_what_readers_counted_live_is_the_lakes_hit_ratio(
    world: World, query: Callable[..., Any]
) -> None:
    hits = by(query("query", query="sum by (warmup_layer, warmup_tier) (cache_hits_total)"),
              "warmup_layer", "warmup_tier")  # fmt: skip
    lookups = by(
        query("query", query="sum by (warmup_layer, warmup_tier) "
              '({__name__=~"cache_(hits|misses)_total"})'), "warmup_layer", "warmup_tier"
    )  # fmt: skip
    for layer, one in world.verified["hit_ratio"].items():
        assert (hits[layer, ""], lookups[layer, ""]) == (one["hits"], one["requests"]), layer
    for tier, one in world.verified["tiers"].items():
        if one["layer"] == "embeddings" and tier == "L1":
            assert (hits["embeddings", "L1"], lookups["embeddings", "L1"]) == (
                one["hits"],
                one["requests"],
            )
    assert hits["responses", ""] == sum(found.hit for found in world.found)
    causes = by(query("query", query="sum by (cache_miss_cause) (cache_misses_total)"),
                "cache_miss_cause")  # fmt: skip
    assert set(causes) <= {"", "below_threshold", "guard_refused"}


def test_an_exemplar_of_a_quantile_leads_to_a_key_in_the_receipts(
    world: World, query: Callable[..., Any]
) -> None:
    now = time.time()
    series = query(
        "query_exemplars",
        query='cache_lookup_duration_seconds_bucket{cache_hit="true"}',
        start=now - 600,
        end=now + 60,
    )
    exemplars = [e for one in series for e in one["exemplars"]]
    assert exemplars
    spans = {span["trace_id"]: span for span in world.receiver.spans("cache.lookup")}
    lake = pipeline.open_lake(world.config)
    receipts = lake.read("receipts", {"plan_id": world.plan_id}).to_pylist()
    warmed = {r["key_hash"]: r for r in receipts if r["status"] == "warmed"}
    for exemplar in exemplars:
        span = spans[exemplar["labels"]["trace_id"]]
        receipt = warmed[span["cache.key.hash"]]
        assert receipt["layer"] == span["warmup.layer"] == "responses"
        assert span["cache.backend"] == "redis"
    assert {r["layer"] for r in warmed.values()} >= {"embeddings", "responses"}
    batches = world.receiver.spans("warmup.batch")
    assert {h for span in batches for h in span["cache.key.hash"]} == set(warmed)


def test_stages_push_their_figures_and_durations_under_the_given_login(world: World) -> None:
    receiver = world.receiver
    assert set(receiver.authorisations) == {"Bearer of-tests"}
    pushed = {
        (told["warmup.layer"], told["cache.backend"]): point.as_double
        for told, point in receiver.points("warmup.completion")
    }
    assert pushed == {
        (layer, target): counts["completion"]
        for layer, targets in world.verified["completion"].items()
        for target, counts in targets.items()
    }
    assert receiver.points("warmup.verify.duration")
    layers = {told["warmup.layer"] for told, _ in receiver.points("warmup.apply.duration")}
    assert {"embeddings", "responses"} <= layers
    assert [p for _, p in receiver.points("warmup.batch.duration") if p.exemplars]
    [verify] = receiver.spans("warmup.verify")
    assert verify["warmup.plan"] == world.plan_id


def test_no_tenant_and_no_text_gets_out(world: World, exporter: str) -> None:
    told = list(world.receiver.bodies)
    for place in (world.gateway, exporter):
        for accept in (OPEN_METRICS, "text/plain"):
            answer = httpx.get(f"http://{place}/metrics", headers={"accept": accept}, timeout=30)
            assert answer.status_code == 200
            told.append(answer.content)
    assert len(told) > 6
    for secret in (WORD, *TENANTS):
        assert not any(secret.encode() in body for body in told), secret


def test_attributes_of_metrics_tell_no_request_and_no_key_apart(
    world: World, query: Callable[..., Any]
) -> None:
    counts: Counter[str] = Counter()
    for job in ("warmup-gateway", "warmup-metrics"):
        for series in query("series", **{"match[]": f'{{job="{job}"}}'}):
            counts.update(series.keys())
            assert not {"request_id", "cache_key_hash", "trace_id"} & series.keys()
    tenants = query("label/warmup_tenant/values")
    assert set(tenants) == {pipeline.open_keys(world.config).scope(t) for t in TENANTS}


def test_the_deployed_rules_judge_what_the_stack_tells(
    world: World, query: Callable[..., Any]
) -> None:
    gate = world.config.gates.warmup_completion
    assert by(query("query", query="warmup_gate"), "warmup_gate")["warmup_completion"] == gate
    groups = query("rules")["groups"]
    health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert len(health) == 9
    until = time.monotonic() + 20
    while set(health.values()) != {"ok"} and time.monotonic() < until:
        time.sleep(0.5)
        groups = query("rules")["groups"]
        health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert set(health.values()) == {"ok"}
    assert world.verified["window"] == LATER_DAY
