"""Documents of some tenants and clusters of prompts that retrieve from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tests.layers.building import (
    ENCODER,
    DictVectors,
    context,
    demand,
    items,
)
from warmup_lib.config import Config
from warmup_lib.keys import Keys
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.layers.demand import Demand
from warmup_lib.layers.retrieval import Retrieval
from warmup_lib.plan.corpus import MEMBERS
from warmup_lib.tables import CHUNKS, MICRO

LAYER = Retrieval()
DIMENSION = 16
TOP = 3


def config(**more: Any) -> Config:
    return Config.model_validate({"layers": {"retrieval": {"top": TOP, **more}}})


class World:
    """Documents of some pages of three chunks each, and clusters of prompts, per tenant."""

    def __init__(self, keys: Keys, pages: int = 4, clusters: int = 5, seed: int = 1) -> None:
        self.keys = keys
        self.draw = np.random.default_rng(seed)
        self.vectors = DictVectors(ENCODER, DIMENSION)
        self.chunks: dict[tuple[str, str], dict[str, Any]] = {}
        self.members: list[dict[str, Any]] = []
        self.prompts: list[dict[str, Any]] = []
        for tenant in ("acme", "beta"):
            for page in range(pages):
                for n in range(3):
                    self.write(tenant, f"page{page}#{n}", f"{tenant} {page} {n}")
            for number in range(clusters):
                self.cluster(tenant, number)

    def write(self, tenant: str, chunk_id: str, text: str) -> None:
        """Write a chunk, or write it anew."""
        digest = self.known(text)
        self.chunks[tenant, chunk_id] = {
            "tenant": tenant,
            "chunk_id": chunk_id,
            "chunk_digest": self.keys.chunk_digest(chunk_id),
            "document": chunk_id.split("#")[0],
            "text": text,
            "text_digest": digest,
        }

    def cluster(self, tenant: str, number: int) -> None:
        medoid = self.known(f"{tenant} question {number}")
        for text in (medoid, self.known(f"{tenant} question {number} again")):
            row = {"tenant": tenant, "cluster_id": f"{tenant}/{number:03}", "medoid": medoid}
            row |= {"text_digest": text, "similarity": 0.9, "heat_micro": (9 - number) * MICRO}
            self.members.append(row)

    def known(self, text: str) -> str:
        """Return the digest of a text that has a vector."""
        digest = self.keys.text_digest(text)
        if digest not in self.vectors.held:
            vector = self.draw.normal(size=DIMENSION).astype(np.float32)
            self.vectors.held[digest] = vector / np.linalg.norm(vector)
        return digest

    def demand(self) -> Demand:
        of = demand(self.prompts)
        return replace(
            of,
            dimension=DIMENSION,
            chunks=pa.Table.from_pylist(list(self.chunks.values()), CHUNKS.schema),
            members=pa.Table.from_pylist(self.members, MEMBERS),
            vectors=self.vectors,
        )

    def items(self, settings: Config | None = None) -> list[PlanItem]:
        return items(LAYER, self.demand(), settings or config())

    def context(self, **more: Any) -> Context:
        return context(self.keys, self.vectors, config(), complete=True, **more)

    def fresh(self, item: PlanItem) -> list[str]:
        """Return the ids of the chunks nearest to an item's medoid, by plain arithmetic."""
        ours = [c for (tenant, _), c in sorted(self.chunks.items()) if tenant == item.tenant]
        medoid = self.vectors.held[item.key_digest].astype(np.float64)
        cosines = {
            c["chunk_id"]: float(self.vectors.held[c["text_digest"]].astype(np.float64) @ medoid)
            for c in ours
        }
        return sorted(cosines, key=lambda chunk_id: -cosines[chunk_id])[:TOP]


def lists(of: Sequence[PlanItem]) -> list[PlanItem]:
    return [item for item in of if item.tier == "L3"]


def chunks(of: Sequence[PlanItem]) -> list[PlanItem]:
    return [item for item in of if item.tier is None]
