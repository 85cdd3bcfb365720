"""What other sets of the same size would have served in the same window, by the same rules.

Compared are the plan itself (which the live ratio must confirm), the plain Top-K of the plan's
last day, and the best set in hindsight: the one a planner that knew the window would choose.
Greedy choice finds it, which is never below 63 % of the true best and mostly close to it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.distil import sql
from warmup_lib.guard import signature
from warmup_lib.lake import Lake
from warmup_lib.layers.base import Context, Layer, PlanItem, Vector
from warmup_lib.layers.demand import Demand
from warmup_lib.plan.coverage import Group, greedy, served_by
from warmup_lib.tables import MICRO
from warmup_lib.verify.vectors import WindowVectors

Place = tuple[str, str, str]
"""Tenant, context and guard signature: inside one, an answer may serve a similar question."""


@dataclass(frozen=True)
class Entry:
    """What of a warm entry decides whom it serves."""

    tenant: str
    key_digest: str
    context_digest: str | None
    text_digest: str | None
    text: str | None


class Coverage:
    """The requests of a window as demand, to be covered by sets of entries.

    Args:
        rows: Rows of `requests` that asked the caches.
        layer: The layer.
        context: Settings and the plan's encoder.
        vectors: Vectors of texts, for a layer that matches by similarity.
    """

    def __init__(
        self, rows: pa.Table, layer: Layer, context: Context, vectors: WindowVectors
    ) -> None:
        self._layer = layer
        self._config = context.config
        self._context = context
        self._vectors = vectors
        encoder = context.vectors.encoder
        self._dimension = context.vectors.dimension if encoder else 0
        self.demand = _demand_of(rows, encoder, self._dimension)
        names = ["tenant", "requests", "text", *_DIGESTS]
        self._rows: list[dict[str, Any]] = self.demand.prompts.select(names).to_pylist()
        self._groups = self._by_place() if layer.match == "semantic" else {}
        self._known = (
            vectors.of({row["text_digest"]: row["text"] or "" for row in self._rows})
            if layer.match == "semantic"
            else {}
        )

    def covered(self, entries: Sequence[Entry]) -> float:
        """Return the share of requests that these entries would have served."""
        exact = {(entry.tenant, entry.key_digest) for entry in entries}
        served = [any((row["tenant"], row[d]) in exact for d in _DIGESTS) for row in self._rows]
        for members, mask in self._similar(entries):
            for member, hit in zip(members, mask, strict=True):
                served[member] = served[member] or bool(hit)
        hits = sum(row["requests"] for row, hit in zip(self._rows, served, strict=True) if hit)
        return float(hits / sum(row["requests"] for row in self._rows))

    def best(self, size: int) -> float:
        """Return the share that the greedily best `size` entries of the window would serve."""
        candidates = main_candidates(self._layer, self.demand, self._config)
        if self._layer.match == "exact":
            return self.covered(hottest(candidates, size))
        allowed = set(
            zip(candidates["tenant"].to_pylist(), candidates["key_digest"].to_pylist(), strict=True)
        )
        best: list[int] = []

        def accept(_: int, gain: int) -> bool:
            """Go on in a group for as long as its gains are among the best of all groups."""
            if len(best) < size:
                heapq.heappush(best, gain)
                return True
            return heapq.heappushpop(best, gain) < gain

        for (tenant, _, _), members in self._groups.items():
            rows = [self._rows[member] for member in members]
            greedy(
                Group(
                    vectors=self._matrix([row["text_digest"] for row in rows], self._known),
                    heat=np.array([row["requests"] for row in rows], dtype=np.int64),
                    choosable=np.array(
                        [(row["tenant"], row["response_digest"]) in allowed for row in rows]
                    ),
                    family=np.arange(len(rows), dtype=np.int64),
                ),
                self._context.threshold(tenant),
                accept,
            )
        # Groups share nothing, so the largest gains of all of them are the best of the whole.
        return float(sum(best) / sum(row["requests"] for row in self._rows))

    def _similar(self, entries: Sequence[Entry]) -> list[tuple[list[int], Any]]:
        if self._layer.match == "exact":
            return []
        by_place: dict[Place, list[Entry]] = defaultdict(list)
        for entry in entries:
            place = (entry.tenant, entry.context_digest or "", signature(entry.text or ""))
            if place in self._groups and entry.text_digest:
                by_place[place].append(entry)
        texts = {e.text_digest or "": e.text or "" for part in by_place.values() for e in part}
        known = self._known | self._vectors.of(texts)
        found = []
        for place, part in by_place.items():
            members = self._groups[place]
            digests = [self._rows[member]["text_digest"] for member in members]
            matrix = self._matrix([*digests, *[e.text_digest or "" for e in part]], known)
            warm = np.arange(len(members), len(matrix), dtype=np.int64)
            served = served_by(matrix, warm, self._context.threshold(place[0]))
            found.append((members, served[: len(members)]))
        return found

    def _by_place(self) -> dict[Place, list[int]]:
        groups: dict[Place, list[int]] = defaultdict(list)
        for index, row in enumerate(self._rows):
            place = (row["tenant"], row["context_digest"], signature(row["text"] or ""))
            groups[place].append(index)
        return dict(groups)

    def _matrix(self, digests: Sequence[str], known: Mapping[str, Vector]) -> Any:
        nothing = np.zeros(self._dimension, dtype=np.float32)
        return np.stack([known.get(digest, nothing) for digest in digests])


_DIGESTS = ("text_digest", "context_digest", "response_digest", "head_digest")
"""A key is one of these, whatever the layer: digests of different kinds never agree."""


def entries_of(items: Sequence[PlanItem]) -> list[Entry]:
    """Return plan items as entries."""
    return [Entry(i.tenant, i.key_digest, i.context_digest, i.text_digest, i.text) for i in items]


def main_candidates(layer: Layer, demand: Demand, config: Config) -> pa.Table:
    """Return a layer's candidates without those of its tiers."""
    candidates = layer.candidates(demand, config)
    return candidates.filter(pc.is_null(candidates["tier"]))


def hottest(candidates: pa.Table, size: int) -> list[Entry]:
    """Return the `size` candidates with the most requests, by tenant and key on ties."""
    ordered = candidates.sort_by(
        [("heat_micro", "descending"), ("tenant", "ascending"), ("key_digest", "ascending")]
    ).slice(0, size)
    names = ["tenant", "key_digest", "context_digest", "text_digest", "text"]
    return [Entry(**row) for row in ordered.select(names).to_pylist()]


def compare(
    lake: Lake,
    coverage: Coverage,
    layer: Layer,
    items: Sequence[PlanItem],
    plan_day: str,
    config: Config,
) -> dict[str, Any]:
    """Return the shares that sets of the plan's size serve in the window.

    Args:
        lake: Holds the prompts of the plan's last day.
        coverage: The window, for this layer.
        layer: The layer.
        items: The plan's items in this layer.
        plan_day: The plan's last day.
        config: The settings.

    Returns:
        `size`, `plan` (offline, by the same rules as the others), `top_k` (null where the lake
        has no prompts of that day), `hindsight`.
    """
    size = len(items)
    yesterday = _demand_of_day(lake, plan_day, coverage.demand)
    top = (
        None
        if yesterday is None
        else coverage.covered(hottest(main_candidates(layer, yesterday, config), size))
    )
    return {
        "size": size,
        "plan": coverage.covered(entries_of(items)),
        "top_k": top,
        "hindsight": coverage.best(size),
    }


def _demand_of(rows: pa.Table, encoder: str, dimension: int) -> Demand:
    """Return rows of `requests` as the demand that `distil` would make of them."""
    day = date(2000, 1, 1)  # the queries read one day, and a window may span several
    dated = rows.append_column("day", pa.repeat(pa.scalar(day), rows.num_rows))
    connection = duckdb.connect()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("requests", dated)
        asked = {"day": day.isoformat()}
        prompts = connection.sql(sql.PROMPTS, params=asked).to_arrow_table()
        heads = connection.sql(sql.HEADS, params=asked).to_arrow_table()
    finally:
        connection.close()
    return Demand(day.isoformat(), _heated(prompts), _heated(heads), encoder, dimension)


def _demand_of_day(lake: Lake, day: str, like: Demand) -> Demand | None:
    if lake.manifest("prompts", {"day": day}) is None:
        return None
    prompts, heads = (_heated(lake.read(table, {"day": day})) for table in ("prompts", "heads"))
    return Demand(day, prompts, heads, like.encoder, like.dimension)


def _heated(rows: pa.Table) -> pa.Table:
    """Add as heat the requests that asked the caches."""
    asked = rows["requests"]
    if "bypassed" in rows.column_names:
        asked = pc.subtract(asked, rows["bypassed"])
    return rows.append_column("heat_micro", pc.multiply(asked, MICRO))
