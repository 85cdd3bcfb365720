"""Builds demand, items and contexts for the layers' tests."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.keys import Keys, Request
from warmup_lib.layers.base import Context, Layer, Lookup, PlanItem, Vector
from warmup_lib.layers.demand import Demand
from warmup_lib.tables import HEADS, MICRO, PROMPTS

ENCODER = "enc-a"
DIMENSION = 8


@dataclass
class DictVectors:
    """Vectors in a dict; `near` gives one of a known cosine with another."""

    encoder: str = ENCODER
    dimension: int = DIMENSION
    held: dict[str, Vector] = field(default_factory=dict)

    def get(self, digests: Sequence[str]) -> Mapping[str, Vector]:
        return {d: self.held[d] for d in digests if d in self.held}


def axis(n: int, dimension: int = DIMENSION) -> Vector:
    unit = np.zeros(dimension, dtype=np.float32)
    unit[n] = 1
    return unit


def at_cosine(cosine: float) -> Vector:
    """Return a unit vector whose cosine with `axis(0)` is `cosine`."""
    return (cosine * axis(0) + np.sqrt(1 - cosine**2) * axis(1)).astype(np.float32)


def new_keys() -> Keys:
    return Keys(secrets.token_bytes(32))


def context(keys: Keys, vectors: DictVectors, config: Config | None = None, **more: Any) -> Context:
    return Context("plan-test", config or Config(), keys, vectors, **more)


def prompt(keys: Keys, tenant: str, text: str, heat: float = 1, **more: Any) -> dict[str, Any]:
    """Return one row of demand; `more` are parts of the request, or columns."""
    parts = {k: more.pop(k) for k in ("system_prompt", "tools", "params") if k in more}
    model = more.pop("model", "m")
    adapter = more.pop("adapter", None)
    request = Request(tenant, model, text, adapter=adapter, **parts)
    identity = keys.identity(request)
    row: dict[str, Any] = dict.fromkeys(PROMPTS.schema.names)
    row |= {"tenant": tenant, "model": model, "adapter": adapter, "text": text, "history": False}
    row |= {"text_digest": identity.text, "context_digest": identity.context}
    row |= {"response_digest": identity.response, "head_digest": identity.head}
    row |= {"requests": 1, "response": f"Answer to {text}", "heat_micro": int(heat * MICRO)}
    return row | more


def head(keys: Keys, tenant: str, system: str, heat: float = 1, **more: Any) -> dict[str, Any]:
    """Return one head of demand; `tools` are JSON."""
    adapter = more.pop("adapter", None)
    parsed = more.pop("parsed_tools", None)
    model = more.pop("model", "m")
    request = Request(tenant, model, "x", system_prompt=system, tools=parsed, adapter=adapter)
    row: dict[str, Any] = dict.fromkeys(HEADS.schema.names)
    row |= {"tenant": tenant, "model": model, "adapter": adapter, "system_prompt": system}
    row |= {"head_digest": keys.identity(request).head, "requests": 1}
    return row | {"heat_micro": int(heat * MICRO)} | more


def demand(prompts: Sequence[dict[str, Any]] = (), heads: Sequence[dict[str, Any]] = ()) -> Demand:
    heat = pa.field("heat_micro", pa.int64())
    return Demand(
        "2026-03-14",
        pa.Table.from_pylist(list(prompts), pa.schema([*PROMPTS.schema, heat])),
        pa.Table.from_pylist(list(heads), pa.schema([*HEADS.schema, heat])),
        ENCODER,
        DIMENSION,
    )


def items(layer: Layer, of: Demand, config: Config | None = None) -> list[PlanItem]:
    return PlanItem.rows(layer.candidates(of, config or Config()))


def lookup(keys: Keys, tenant: str, text: str, ident: str = "", **more: Any) -> Lookup:
    vector = more.pop("vector", None)
    tools = more.pop("tools_json", None)
    own = {name: more.pop(name) for name in ("user_segment", "chunk_ids") if name in more}
    request = Request(tenant, more.pop("model", "m"), text, **more)
    identity = keys.identity(request)
    return Lookup(
        ident or f"{tenant}:{text}",
        tenant,
        request.model,
        None,
        request.adapter,
        identity.text,
        identity.context,
        identity.response,
        identity.head,
        text,
        request.system_prompt,
        tools,
        vector=vector,
        **own,
    )
