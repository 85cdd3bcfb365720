"""A lake with a plan of embeddings and answers, made by hand under real keys and random vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tests.apply.memory import plan_table
from warmup_lib.embed.vectors import vector_column
from warmup_lib.keys import Keys, Request
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem, item_id

SECRET = "a secret of the tests only"
ENCODER = "0123456789abcdef"
PLAN_DAY = "2026-03-14"
TENANTS = ("acme", "globex")


def keys() -> Keys:
    return Keys(SECRET.encode())


def question(number: int) -> str:
    return f"how do I do thing number {number}"


def asked(number: int) -> Request:
    tenant = TENANTS[number % len(TENANTS)]
    return Request(tenant, "m", question(number), system_prompt=f"you help {tenant}")


def vector_of(number: int, dimension: int) -> Any:
    vector = np.random.default_rng(number).standard_normal(dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def items(layer: str, numbers: Sequence[int], dimension: int) -> list[PlanItem]:
    return [_item(layer, rank, number, dimension) for rank, number in enumerate(numbers, 1)]


def _item(layer: str, rank: int, number: int, dimension: int) -> PlanItem:
    request = asked(number)
    identity = keys().identity(request)
    answers = layer == "responses"
    digest = identity.response if answers else identity.text
    return PlanItem(
        item_id=item_id(layer, request.tenant, digest, *(["m"] if answers else [])),
        rank=rank,
        layer=layer,
        tenant=request.tenant,
        model="m" if answers else "",
        model_revision=None,
        adapter=None,
        key_digest=digest,
        context_digest=identity.context if answers else None,
        text_digest=identity.text,
        text=request.prompt,
        response=f"answer number {number}" if answers else None,
        system_prompt=None,
        tools=None,
        params=None,
        encoder=ENCODER,
        heat_micro=1_000_000,
        expected_micro=1_000_000,
        bytes=4 * dimension,
        ttl_s=172_800,
        reason="asked often",
    )


def fill(lake: Lake, plan: Sequence[PlanItem], texts: Sequence[int], dimension: int) -> None:
    """Write a plan, and the vectors of the questions with these numbers."""
    lake.replace("plan", {"plan_id": "p1"}, plan_table(plan), {"day": PLAN_DAY})
    digests = [keys().text_digest(question(number)) for number in texts]
    vectors = np.stack([vector_of(number, dimension) for number in texts])
    rows = pa.table({"text_digest": digests, "vector": vector_column(vectors)})
    lake.replace("vectors", {"encoder": ENCODER, "day": PLAN_DAY}, rows, {"dimension": dimension})
