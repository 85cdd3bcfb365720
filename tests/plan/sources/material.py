"""Hand-made material for the tests of sources: prompts, heads and lists, without a lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tests.plan.building import at, rows_of
from warmup_lib.plan.sources.base import Material, Proposal
from warmup_lib.plan.sources.scores import SCHEMA
from warmup_lib.tables import INT, MICRO


def material(
    prompts: Sequence[Mapping[str, Any]] = (),
    heads: Sequence[Mapping[str, Any]] = (),
    listed: Sequence[Mapping[str, Any]] = (),
    scores: Sequence[Mapping[str, Any]] = (),
    degrees: Mapping[str, float] | None = None,
) -> Material:
    """Each prompt and head has its requests as heat; each list row names a prompt by its text.

    `degrees` are the directions of text digests in a plane.
    """
    texts = [row.get("text") for row in prompts]
    names = [row["head_digest"] for row in heads]
    return Material(
        _hot("prompts", prompts),
        _hot("heads", heads),
        rows_of("listed", listed),
        np.array([_place(row.get("text"), texts) for row in listed], np.int64),
        np.array([_place(row.get("head_digest"), names) for row in listed], np.int64),
        pa.Table.from_pylist([dict(row) for row in scores], schema=SCHEMA),
        _Plane(degrees) if degrees is not None else None,
        4,
    )


@dataclass(frozen=True)
class _Plane:
    """Vectors in the plane of the first two axes."""

    degrees: Mapping[str, float]
    encoder: str = "enc"
    dimension: int = 4

    def get(self, digests: Sequence[str]) -> dict[str, Any]:
        return {d: at(self.degrees[d]) for d in digests if d in self.degrees}


def _hot(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    heat = pa.array([row["requests"] * MICRO for row in rows], INT)
    return rows_of(table, rows).append_column("heat_micro", heat)


def _place(name: Any, among: list[Any]) -> int:
    return among.index(name) if name in among else -1


def prompts_of(proposal: Proposal, of: Material) -> list[str]:
    """Return the texts that are proposed."""
    texts: list[str] = of.prompts["text"].to_pylist()
    return [text for text, here in zip(texts, proposal.prompts, strict=True) if here]


def heads_of(proposal: Proposal, of: Material) -> list[str]:
    """Return the heads that are proposed."""
    digests: list[str] = of.heads["head_digest"].to_pylist()
    return [digest for digest, here in zip(digests, proposal.heads, strict=True) if here]
