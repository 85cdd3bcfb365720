"""The planned answers nearest to a question, and whether the guard tells them apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warmup_lib.explain.miss import Miss
from warmup_lib.explain.standing import Standing
from warmup_lib.guard import tag
from warmup_lib.layers.base import PlanItem, Vector, Vectors
from warmup_lib.places import RESPONSES
from warmup_lib.verify.vectors import Encode, WindowVectors


@dataclass(frozen=True)
class Near:
    """What of the planned answers in a request's context is near to it.

    Attributes:
        same: Cosine of the nearest one that the guard lets through; -1: there is none.
        other: Cosine of the nearest one that the guard refuses; -1: there is none.
        item: The nearest one that the guard lets through.
        refused: The nearest one that the guard refuses.
    """

    same: float = -1.0
    other: float = -1.0
    item: PlanItem | None = None
    refused: PlanItem | None = None


_Laid = tuple[list[PlanItem], Vector, np.ndarray[Any, np.dtype[np.str_]]]
"""Items of one context, their vectors as rows, and their guard tags."""


class Nearest:
    """Finds near answers of a plan.

    Args:
        standing: The plan's items.
        vectors: Vectors of the plan's texts.
        encode: Gives later texts their vectors.
    """

    def __init__(self, standing: Standing, vectors: Vectors, encode: Encode) -> None:
        self._vectors = vectors
        self._asked = WindowVectors(vectors, encode)
        self._groups: dict[tuple[str, str], list[PlanItem]] = defaultdict(list)
        self._found: dict[tuple[str, str], Near] = {}
        self._laid: dict[tuple[str, str], _Laid] = {}
        for (layer, _, tenant, _), items in standing.items.items():
            for item in items if layer == RESPONSES else ():
                self._groups[tenant, item.context_digest or ""].append(item)

    def of(self, misses: Sequence[Miss]) -> list[Near]:
        """Return what is near to each request."""
        texts = {
            miss.asked.text_digest: miss.asked.prompt
            for miss in misses
            if (miss.asked.tenant, miss.asked.context_digest) in self._groups
        }
        known = self._asked.of(texts)
        return [self._once(miss, known.get(miss.asked.text_digest)) for miss in misses]

    def _once(self, miss: Miss, vector: Vector | None) -> Near:
        """Return what is near to an identity; a window asks for some again and again."""
        asked = miss.asked.tenant, miss.asked.response_digest
        if asked not in self._found:
            self._found[asked] = self._near(miss, vector)
        return self._found[asked]

    def _near(self, miss: Miss, vector: Vector | None) -> Near:
        place = miss.asked.tenant, miss.asked.context_digest
        if vector is None or place not in self._groups:
            return Near()
        items, matrix, tags = self._lay(place)
        if not items:
            return Near()
        cosines = matrix @ vector
        same = tags == tag(miss.asked.prompt)
        best = int(np.argmax(np.where(same, cosines, -2)))
        other = int(np.argmax(np.where(same, -2, cosines)))
        return Near(
            float(cosines[best]) if same[best] else -1.0,
            float(cosines[other]) if not same[other] else -1.0,
            items[best] if same[best] else None,
            items[other] if not same[other] else None,
        )

    def _lay(self, place: tuple[str, str]) -> _Laid:
        if place not in self._laid:
            held = self._vectors.get([item.text_digest or "" for item in self._groups[place]])
            items = [item for item in self._groups[place] if item.text_digest in held]
            rows = [held[item.text_digest or ""] for item in items]
            matrix = np.stack(rows) if rows else np.zeros((0, 0), np.float32)
            self._laid[place] = items, matrix, np.array([tag(item.text or "") for item in items])
        return self._laid[place]
