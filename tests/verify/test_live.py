"""On a real Redis: what replay finds live is what the plan's coverage offline says it must."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.apply.handmade import (
    ENCODER,
    PLAN_DAY,
    TENANTS,
    asked,
    fill,
    items,
    keys,
    question,
    vector_of,
)
from tests.apply.server import Server
from tests.verify.world import request, requests
from warmup_lib.apply.opened import open_context, read_items
from warmup_lib.apply.stage import warm
from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.layers.base import item_id
from warmup_lib.layers.registry import LAYERS
from warmup_lib.targets.open import close_all, open_targets
from warmup_lib.verify.measuring import Subject
from warmup_lib.verify.stage import verify
from warmup_lib.verify.window import from_lake

pytestmark = pytest.mark.stack

DIMENSION = 64
PLANNED = range(40)
KINDS = ("same", "similar", "other number", "far", "other tenant", "unknown")


def row(number: int, kind: str, at: int) -> tuple[dict[str, Any], Any]:
    """Return a request of a kind, made from a planned question, and the vector of its text."""
    base = asked(number)
    tenant, text, vector = base.tenant, base.prompt, vector_of(number, DIMENSION)
    other = vector_of(10_000 + number, DIMENSION)
    if kind == "similar":
        text, vector = f"please, {text}", _mix(vector, other, 0.95)
    elif kind == "other number":
        text, vector = question(number + 500), _mix(vector, other, 0.99)
    elif kind == "far":
        text, vector = f"tell me, {text}", _mix(vector, other, 0.85)
    elif kind == "other tenant":
        tenant = next(t for t in TENANTS if t != tenant)
    elif kind == "unknown":
        text, vector = f"something else entirely {number}", other
    identity = keys().identity(type(base)(tenant, "m", text, system_prompt=f"you help {tenant}"))
    fields = {
        "tenant": tenant,
        "prompt": text,
        "system_prompt": f"you help {tenant}",
        "text_digest": identity.text,
        "context_digest": identity.context,
        "response_digest": identity.response,
        "head_digest": identity.head,
    }
    return request(at, 0, **fields), vector


def _mix(vector: Any, other: Any, cosine: float) -> Any:
    """Return a vector of length 1 at this cosine from `vector`, towards `other`."""
    across = other - (other @ vector) * vector
    across /= np.linalg.norm(across)
    mixed = cosine * vector + np.sqrt(1 - cosine**2) * across
    return mixed.astype(np.float32)


@pytest.fixture
def server(stack_artifacts: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "redis", stack_artifacts)
    yield server
    server.stop()


def test_live_ratios_agree_with_offline_coverage_and_the_control_finds_nothing(
    tmp_path: Path, server: Server
) -> None:
    lake = Lake(f"file://{tmp_path}/lake")
    plan = items("embeddings", PLANNED, DIMENSION) + items("responses", PLANNED, DIMENSION)
    fill(lake, plan, PLANNED, DIMENSION)
    rows, made = [], {}
    for at, (number, kind) in enumerate(itertools.product(range(60), KINDS)):
        one, vector = row(number, kind, at)
        rows.append(one)
        made[one["prompt"]] = vector
    lake.replace("requests", {"day": "2026-03-15"}, requests(*rows))
    config = Config.model_validate(
        {
            "lake": lake.uri,
            "targets": [{"kind": "redis", "name": "cache", "url": server.url}],
        }
    )

    def encode(texts: Sequence[str]) -> Any:
        return np.stack([made[text] for text in texts]), np.ones(len(texts), dtype=bool)

    async def go() -> Any:
        targets = open_targets(config)
        try:
            chosen = read_items(lake, "p1")
            context = open_context(lake, "p1", config, keys(), chosen, targets)
            layers = list(LAYERS.values())
            await warm(lake, chosen, layers, targets, context, resume=False)
            subject = Subject(lake, chosen, PLAN_DAY, layers, targets, context)
            window = from_lake(lake, "2026-03-15", PLAN_DAY)
            return await verify(subject, window, encode)
        finally:
            await close_all(targets)

    facts = asyncio.run(go()).facts
    shares = facts["baselines"]
    # A text's own vector does not depend on the tenant, but its entry does.
    assert facts["by_match"]["embeddings"] == {"exact": 40, "miss": 320}
    # 40 questions as they were, 40 said a little differently; another number, another tenant and
    # a text further away than the threshold find nothing.
    assert facts["by_match"]["responses"] == {"exact": 40, "semantic": 40, "miss": 280}
    for layer in ("embeddings", "responses"):
        assert shares[layer]["live"] == pytest.approx(shares[layer]["plan"])
    assert shares["responses"]["live"] == pytest.approx(80 / 360)
    assert (facts["control_asked"], facts["control_hits"]) == (200, 0)
    assert facts["other_plans_hits"] == 0

    hits = lake.read("hits", {"plan_id": "p1", "window": "2026-03-15"}).to_pylist()
    served = {(h["layer"], h["request_id"]): h["item_id"] for h in hits if h["hit"]}
    for number in PLANNED:
        request_ = asked(number)
        expected = item_id("responses", request_.tenant, keys().identity(request_).response, "m")
        for kind in ("same", "similar"):
            at = number * len(KINDS) + KINDS.index(kind)
            assert served["responses", f"r{at}"] == expected
    assert ENCODER not in str(facts)
