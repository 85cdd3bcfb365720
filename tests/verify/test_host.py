"""On a model host: heads are warmed, proven once a receipt, and compared cold and warm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apply.memory import plan_table
from tests.targets.tiny_host import MODEL, TinyHost, serving
from tests.verify.world import request, requests
from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.keys import Keys, Request
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem, item_id
from warmup_lib.stack import StackState

SECRET = "a secret of these tests"
PLANNED, UNPLANNED = range(4), range(4, 6)


def asked(head: int, model: str, question: str = "What now?") -> Request:
    rules = " ".join(f"Rule {n} of house {head}: kind {n} goes back in {n} days." for n in range(9))
    return Request("acme", model, question, system_prompt=rules)


def head_item(head: int, model: str) -> PlanItem:
    of = asked(head, model)
    digest = Keys(SECRET.encode()).identity(of).head
    return PlanItem(
        item_id=item_id("prefixes", of.tenant, digest, model),
        rank=head + 1,
        layer="prefixes",
        tenant=of.tenant,
        model=model,
        model_revision=None,
        adapter=None,
        key_digest=digest,
        context_digest=None,
        text_digest=None,
        text=None,
        response=None,
        system_prompt=of.system_prompt,
        tools=None,
        params=None,
        encoder=None,
        heat_micro=1_000_000,
        expected_micro=1_000_000,
        bytes=0,
        ttl_s=1800,
        reason="shared by many requests",
    )


def later(number: int, head: int, model: str) -> dict[str, Any]:
    of = asked(head, model, f"What about order {number}?")
    identity = Keys(SECRET.encode()).identity(of)
    return request(
        number,
        0,
        model=model,
        prompt=of.prompt,
        system_prompt=of.system_prompt,
        text_digest=identity.text,
        context_digest=identity.context,
        response_digest=identity.response,
        head_digest=identity.head,
    )


def prepare(tmp_path: Path, url: str, model: str) -> tuple[Lake, Config]:
    lake = Lake(f"file://{tmp_path}/lake")
    plan = plan_table([head_item(head, model) for head in PLANNED])
    lake.replace("plan", {"plan_id": "p1"}, plan, {"day": "2026-03-14"})
    heads = [*PLANNED, *UNPLANNED]
    rows = [later(number, heads[number % len(heads)], model) for number in range(24)]
    lake.replace("requests", {"day": "2026-03-15"}, requests(*rows))
    host = {"kind": "host", "name": "gpu", "url": url, "cache_salt": "derived"}
    settings = {"lake": lake.uri, "targets": [host], "verify": {"cold_sample": 12}}
    return lake, Config.model_validate(settings)


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)


@pytest.fixture
def tiny() -> Iterator[TinyHost]:
    with serving(TinyHost()) as host:
        host.kv_blocks = 2000
        yield host


def evict(tiny: TinyHost, head: int) -> None:
    tiny.blocks = {block for block in tiny.blocks if hash(f"{head}:") not in block}


def resident(facts: dict[str, Any]) -> int:
    return int(facts["completion"]["prefixes"]["gpu"]["resident"])


def test_what_the_probe_put_there_is_neither_resident_nor_a_hit(
    tmp_path: Path, tiny: TinyHost
) -> None:
    lake, config = prepare(tmp_path, tiny.url, MODEL)
    applied = pipeline.apply(config, "p1").facts
    assert applied["completion"]["prefixes"]["gpu"]["done"] == 4
    evict(tiny, 2)

    first = pipeline.verify(config, "p1", day="2026-03-15").facts
    assert resident(first) == 3
    assert first["hit_ratio"]["prefixes"]["overall"] == 12 / 24
    # 4 requests of the evicted head, warm by its probe; 6 of unplanned heads, warm by the sample.
    assert first["other_plans_hits"] == 4 + 6
    assert (first["control_asked"], first["control_hits"]) == (12, 0)
    assert first["baselines"]["prefixes"]["plan"] == 16 / 24
    assert first["first_token"]["cold"]["n"] == 12
    assert not first["gates"]["warmup_completion"]["passed"]

    again = pipeline.verify(config, "p1").facts
    assert resident(again) == 3
    rows = lake.read("residency", {"plan_id": "p1"}).to_pylist()
    assert sorted(row["resident"] for row in rows) == [False, True, True, True]

    assert pipeline.apply(config, "p1", resume=True).facts["kept"] == 4
    assert resident(pipeline.verify(config, "p1").facts) == 3  # the same receipts
    applied = pipeline.apply(config, "p1").facts
    assert applied["completion"]["prefixes"]["gpu"]["already"] == 4
    assert resident(pipeline.verify(config, "p1").facts) == 4


def test_a_restarted_host_is_warmed_again_by_resume(tmp_path: Path, tiny: TinyHost) -> None:
    _, config = prepare(tmp_path, tiny.url, MODEL)
    pipeline.apply(config, "p1")
    assert resident(pipeline.verify(config, "p1").facts) == 4
    tiny.restart()
    sent = len(tiny.requests)
    assert resident(pipeline.verify(config, "p1").facts) == 0
    assert len(tiny.requests) == sent  # nothing was probed, so nothing was warmed
    assert pipeline.apply(config, "p1", resume=True).facts["warmed"] == 4
    assert resident(pipeline.verify(config, "p1").facts) == 4


def test_a_host_that_is_down_is_named(tmp_path: Path, tiny: TinyHost) -> None:
    _, config = prepare(tmp_path, tiny.url, MODEL)
    config = config.model_copy(update={"apply": config.apply.model_copy(update={"attempts": 1})})
    tiny.status["/v1/chat/completions"] = 503
    facts = pipeline.apply(config, "p1").facts
    assert facts["unavailable"] == [{"target": "gpu", "reason": "it answers 503"}]
    assert facts["warmed"] == 0


def test_our_own_requests_are_marked_in_the_hosts_log(tmp_path: Path, tiny: TinyHost) -> None:
    _, config = prepare(tmp_path, tiny.url, MODEL)
    pipeline.apply(config, "p1")
    pipeline.verify(config, "p1", day="2026-03-15")
    headers = [{k.lower(): v for k, v in sent.items()} for sent in tiny.headers]
    assert len(headers) > 40
    assert all("x-warmup" in sent for sent in headers)
    assert all(sent["x-request-id"].startswith("warmup-") for sent in headers)


@pytest.mark.host
def test_on_a_real_host_warm_heads_answer_sooner(tmp_path: Path, stack_host: StackState) -> None:
    service = stack_host.hosts[0]
    assert service.model is not None
    _, config = prepare(tmp_path, service.url, service.model)
    cold = pipeline.verify(config, "p1").facts
    assert resident(cold) == 0
    pipeline.apply(config, "p1")
    facts = pipeline.verify(config, "p1", day="2026-03-15").facts
    assert resident(facts) == 4
    assert facts["hit_ratio"]["prefixes"]["overall"] == pytest.approx(16 / 24)
    assert facts["control_hits"] == 0
    assert facts["first_token"]["on_hits"]["speed_up"] > 1.2
    assert facts["host_unserved"] == facts["host_planned_misses"] == 0
