"""Adapters on real hosts: planned from a log, loaded, proven, replaced and unloaded."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.layers.adapters import served_name
from warmup_lib.layers.folders import content_hash
from warmup_lib.stack.adapters import compose_adapter
from warmup_lib.stack.servers import MAX_LORAS, MODEL_NAME
from warmup_lib.stack.state import StackState
from warmup_lib.stage import StageReport
from warmup_lib.targets import lora

DAY = "2026-03-14"


@dataclass
class Site:
    """A lake with a log, hosts, and adapters in folders of their own."""

    place: Path
    urls: dict[str, str]
    model: dict[str, Any]
    names: Sequence[str]

    def __post_init__(self) -> None:
        for name in self.names:
            self.compose(name, name)
        targets = [
            {"kind": "host", "name": n, "url": u, "cache_salt": "derived"}
            for n, u in self.urls.items()
        ]
        folders = {name: str(self.place / name) for name in self.names}
        self.config = Config.model_validate(
            {
                "lake": (self.place / "lake").as_uri(),
                "targets": targets,
                "layers": {"adapters": {"folders": folders}},
                "apply": {"attempts": 2, "interference": {"enabled": False}},
            }
        )
        log = self.place / "log.jsonl"
        log.write_text("".join(json.dumps(row) + "\n" for row in self.rows()), encoding="utf-8")
        pipeline.ingest(self.config, [log], "jsonl")
        for stage in ("distil", "forecast"):
            pipeline.day_stage(stage, self.config, DAY)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield requests: the first adapter is asked for the most."""
        for rank, name in enumerate(self.names):
            for n in range(len(self.names) - rank):
                yield {
                    "request_id": f"{name}-{n}",
                    "ts": f"{DAY}T10:00:{n:02d}Z",
                    "tenant": f"t{n % 2}",
                    "model": MODEL_NAME,
                    "adapter": name,
                    "prompt": f"question {n}",
                }

    def compose(self, name: str, seed: str) -> None:
        """Write an adapter's weights anew, as `seed` decides."""
        compose_adapter(seed, self.model, self.place / name)

    def served(self, name: str) -> str:
        """Return the name of the weights that lie in an adapter's folder now."""
        return served_name(name, content_hash(str(self.place / name)))

    def plan(self) -> StageReport:
        return pipeline.plan(self.config, DAY, layers=["adapters"])

    def apply(self, plan: StageReport) -> StageReport:
        return pipeline.apply(self.config, plan.facts["plan_id"])

    def verify(self, plan: StageReport) -> dict[tuple[str, str], tuple[bool, str]]:
        """Return resident and evidence by host and adapter."""
        ident = {"plan_id": plan.facts["plan_id"]}
        pipeline.verify(self.config, ident["plan_id"])
        lake = pipeline.open_lake(self.config)
        names = {row["item_id"]: row["adapter"] for row in lake.read("plan", ident).to_pylist()}
        return {
            (row["target"], names[row["item_id"]]): (row["resident"], row["evidence"])
            for row in lake.read("residency", ident).to_pylist()
        }

    def listed(self, host: str) -> set[str]:
        """Return this site's adapters that a host lists."""
        cards = httpx.get(f"{self.urls[host]}/v1/models").json()["data"]
        return {card["id"] for card in cards if card["id"].startswith(tuple(self.names))}

    def clear(self) -> None:
        """Take everything off the hosts, which other tests share."""
        for host, url in self.urls.items():
            for name in self.listed(host):
                httpx.post(f"{url}/v1/unload_lora_adapter", json={"lora_name": name})


def opened(place: Path, state: StackState, artifacts: Path, names: Sequence[str]) -> Site:
    model = json.loads((artifacts / "model" / "config.json").read_text(encoding="utf-8"))
    return Site(place, {host.name: host.url for host in state.hosts}, model, names)


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", "s" * 32)


@pytest.fixture
def site(tmp_path: Path, stack_host: StackState, stack_artifacts: Path) -> Iterator[Site]:
    one = opened(tmp_path, stack_host, stack_artifacts, ("live-cards", "live-loans"))
    yield one
    one.clear()


@pytest.mark.host
def test_replaced_weights_are_caught_then_served_and_the_old_ones_unloaded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = site.plan()
    assert first.facts["items"] == {"adapters": 2}
    before = {name: site.served(name) for name in site.names}
    applied = site.apply(first)
    assert applied.facts["completion"]["adapters"]["vllm-1"]["done"] == 2
    assert site.listed("vllm-1") == set(before.values())
    for resident, evidence in site.verify(first).values():
        assert resident
        assert evidence.startswith("listed; logprob -")
    assert site.apply(first).facts["completion"]["adapters"]["vllm-1"]["already"] == 2

    site.compose("live-cards", "retrained")
    changed = site.verify(first)
    assert changed["vllm-1", "live-cards"] == (False, "weights at its path have changed")
    assert changed["vllm-1", "live-loans"][0]
    assert site.apply(first).facts["completion"]["adapters"]["vllm-1"]["failed"] == 1

    second = site.plan()
    assert second.facts["plan_id"] != first.facts["plan_id"]
    url, old = site.urls["vllm-1"], before["live-cards"]
    long = {"model": old, "prompt": "Say", "max_tokens": 120, "ignore_eos": True}
    user = threading.Thread(
        target=httpx.post, args=(f"{url}/v1/completions",), kwargs={"json": long, "timeout": 120}
    )
    user.start()
    time.sleep(1)
    in_use = site.apply(second)
    user.join()
    assert f"target 'vllm-1': adapter {old} stays loaded: requests use it" in in_use.notes
    assert site.listed("vllm-1") == {*before.values(), site.served("live-cards")}
    assert all(resident for resident, _ in site.verify(second).values())

    monkeypatch.setattr(lora, "QUIET_S", 1.0)
    time.sleep(2)
    site.apply(second)
    assert site.listed("vllm-1") == {site.served(name) for name in site.names}


@pytest.mark.slow
@pytest.mark.host
def test_four_of_five_adapters_on_two_hosts(
    tmp_path: Path, two_hosts: StackState, stack_artifacts: Path
) -> None:
    names = [f"duo-{n}-lora" for n in "abcde"]
    assert len(names) == MAX_LORAS + 1
    site = opened(tmp_path, two_hosts, stack_artifacts, names)
    first = site.plan()
    assert first.facts["items"] == {"adapters": MAX_LORAS}
    lake = pipeline.open_lake(site.config)
    [left] = lake.read("left_out", {"plan_id": first.facts["plan_id"]}).to_pylist()
    assert (left["digest"], left["reason"]) == (
        content_hash(str(site.place / names[4])),
        "below_budget",
    )
    try:
        site.apply(first)
        proven = site.verify(first)
        assert set(proven) == {(host, name) for host in site.urls for name in names[:4]}
        assert all(resident for resident, _ in proven.values()), proven
        assert all(evidence.startswith("listed; logprob") for _, evidence in proven.values())

        old = site.served(names[1])
        site.compose(names[1], "retrained")
        caught = site.verify(first)
        assert {place for place, (resident, _) in caught.items() if not resident} == {
            (host, names[1]) for host in site.urls
        }
        second = site.plan()
        applied = site.apply(second)
        assert all(resident for resident, _ in site.verify(second).values()), applied.notes
        for host in site.urls:
            assert site.listed(host) == {site.served(name) for name in names[:4]}
            assert old not in site.listed(host)
    finally:
        site.clear()
