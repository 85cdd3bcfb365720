"""Targets and layers that keep everything in a dict and behave like the real ones."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.errors import TargetUnavailable
from warmup_lib.keys import Keys
from warmup_lib.layers.base import (
    Context,
    Layer,
    Lookup,
    Match,
    MatchKind,
    Outcome,
    PlanItem,
    Proof,
    Vector,
    item_id,
)
from warmup_lib.tables import PLAN

EPOCHS = itertools.count(1)
ENCODER = "memory-2d"


@dataclass
class MemoryTarget:
    """A place that loses what it held when it restarts."""

    name: str
    kind: Literal["redis", "host"] = "redis"
    held: dict[str, int] = field(default_factory=dict)
    owner: str | None = None
    down: bool = False
    calls: int = 0
    run_id: str = field(default_factory=lambda: f"epoch-{next(EPOCHS)}")

    def restart(self) -> None:
        self.held.clear()
        self.owner = None
        self.run_id = f"epoch-{next(EPOCHS)}"

    def answer(self) -> None:
        self.calls += 1
        if self.down:
            raise TargetUnavailable(self.name, "no connection")

    async def epoch(self) -> str:
        self.answer()
        return self.run_id

    async def set_generation(self, plan_id: str) -> None:
        self.answer()
        self.owner = plan_id

    async def generation(self) -> str | None:
        self.answer()
        return self.owner

    async def close(self) -> None:
        self.held.clear()


@dataclass
class MemoryHost:
    """A model host: it keeps no generation, and looking at it warms."""

    name: str
    kind: Literal["redis", "host"] = "host"
    held: dict[str, int] = field(default_factory=dict)
    down: bool = False
    run_id: str = field(default_factory=lambda: f"epoch-{next(EPOCHS)}")

    async def epoch(self) -> str:
        if self.down:
            raise TargetUnavailable(self.name, "no connection")
        return self.run_id

    async def close(self) -> None:
        self.held.clear()


class MemoryLayer(Layer):
    """Warms an item by putting its key into the target's dict; finds by the response digest."""

    def __init__(self, name: str, target_kind: Literal["redis", "host"] = "redis") -> None:
        self.name = name
        self.target_kind = target_kind
        self.match: Literal["exact", "semantic"] = "exact"
        self.warmed: list[str] = []
        self.probed: list[str] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.refuse: set[str] = set()
        self.before_batch: Any = None

    async def warm(self, items: Sequence[PlanItem], target: Any, context: Context) -> list[Outcome]:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0.001)
            if self.before_batch:
                self.before_batch(self)
            if target.down:
                raise TargetUnavailable(target.name, "no connection")
            return [self._one(item, target, context) for item in items]
        finally:
            self.in_flight -= 1

    def _one(self, item: PlanItem, target: Any, context: Context) -> Outcome:
        if item.item_id in self.refuse:
            return Outcome(item.item_id, "failed", error="it is refused")
        self.warmed.append(item.item_id)
        target.held[self._key(context, item.tenant, item.key_digest)] = item.ttl_s
        return Outcome(item.item_id, "warmed", bytes=item.bytes, ms=1.0, ttl_s=item.ttl_s)

    async def prove(self, items: Sequence[PlanItem], target: Any, context: Context) -> list[Proof]:
        if target.down:
            raise TargetUnavailable(target.name, "no connection")
        proofs = []
        for item in items:
            self.probed.append(item.item_id)
            key = self._key(context, item.tenant, item.key_digest)
            proofs.append(Proof(item.item_id, key in target.held, "seen"))
            if self.target_kind == "host":
                target.held[key] = item.ttl_s
        return proofs

    async def find(self, lookups: Sequence[Lookup], target: Any, context: Context) -> list[Match]:
        if target.down:
            raise TargetUnavailable(target.name, "no connection")
        return [self._find(lookup, target, context) for lookup in lookups]

    def _find(self, lookup: Lookup, target: Any, context: Context) -> Match:
        host = self.target_kind == "host"
        digest = lookup.head_digest if host else lookup.response_digest
        key = self._key(context, lookup.tenant, digest)
        if host and context.control is not None:
            key += lookup.request_id
        hit = key in target.held
        kind: MatchKind = "prefix" if host else "exact"
        found = Match(
            lookup.request_id,
            hit,
            kind if hit else None,
            item_id=item_id(self.name, lookup.tenant, digest),
        )
        if not host:
            return found
        target.held[key] = 1
        return Match(
            **{**asdict(found), "ttft_ms": 10.0 if hit else 100.0, "prompt_tokens": 100},
        )

    def _key(self, context: Context, tenant: str, digest: str) -> str:
        return f"{context.namespace(tenant)}:{self.name}:{digest}"


class MemoryVectors:
    """No vectors."""

    encoder = ENCODER
    dimension = 2

    def get(self, digests: Sequence[str]) -> Mapping[str, Vector]:
        return {d: np.array([1.0, 0.0], dtype=np.float32) for d in digests}


def plan_item(layer: str, number: int, *, tenant: str = "acme", ttl_s: int = 3600) -> PlanItem:
    digest = f"{number:032x}"
    return PlanItem(
        item_id=item_id(layer, tenant, digest),
        rank=number,
        layer=layer,
        tenant=tenant,
        model="m",
        model_revision=None,
        adapter=None,
        key_digest=digest,
        context_digest=None,
        text_digest=digest,
        text="text",
        response="answer",
        system_prompt=None,
        tools=None,
        params=None,
        encoder=ENCODER,
        heat_micro=1,
        expected_micro=1,
        bytes=100,
        ttl_s=ttl_s,
        reason="asked often",
    )


def plan_table(items: Sequence[PlanItem]) -> pa.Table:
    return pa.Table.from_pylist([asdict(item) for item in items], schema=PLAN.schema)


def memory_context(plan_id: str = "p1", **apply: Any) -> Context:
    settings = {"attempts": 2, "batch": 4, "concurrency": 3, **apply}
    config = Config.model_validate({"apply": settings})
    return Context(plan_id, config, Keys(b"0123456789abcdef"), MemoryVectors())
