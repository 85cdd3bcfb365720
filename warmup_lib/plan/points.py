"""The demand of a semantic layer laid out for coverage: one row a prompt, its group, its heat.

Rows of one group (tenant, context, guard signature) lie side by side, in the order that breaks
ties. Vectors are not held here: `groups` reads those of as many groups at a time as `HELD` texts
allow, or of one group that is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.guard import signature
from warmup_lib.plan.coverage import Mask
from warmup_lib.plan.neighbours import Floats, Ints

Reals = np.ndarray[Any, np.dtype[np.float64]]

HELD = 262_144
"""Texts whose vectors are held at once: 0.5 GB at 512 dimensions."""


class Matrix(Protocol):
    """Where vectors come from."""

    def matrix(self, digests: Sequence[str]) -> Floats:
        """Return the vectors as rows; zeros where there is none."""


@dataclass(frozen=True)
class Points:
    """What is asked for, and what of it may be chosen. All arrays have one entry a row.

    Attributes:
        rank: Order that breaks ties, over all groups: by digest, then tenant.
        heat: Expected requests in millionths.
        candidate: Row in the layer's candidates, -1: it may not be warmed.
        family: Near duplicates share a number.
        key: Tenant and response_digest.
        text: `text_digest`.
        starts: First row of each group, and the number of rows at the end.
    """

    rank: Ints
    heat: Ints
    candidate: Ints
    family: Ints
    key: pa.ChunkedArray
    text: pa.ChunkedArray
    starts: Ints

    def holding(self, items: pa.Table) -> Mask:
        """Return which rows are those of some items, rows of the `plan` table."""
        return place_of(self.key, joined(items["tenant"], items["key_digest"])) >= 0

    def by_tenant(self, value: Callable[[str], float]) -> Reals:
        """Return a value of each row's tenant, (n,)."""
        tenants = pc.list_element(pc.split_pattern(self.key, "\0", max_splits=1), 0)
        encoded = tenants.combine_chunks().dictionary_encode()
        each = np.array([value(tenant) for tenant in encoded.dictionary.to_pylist()], np.float64)
        return each[ints(encoded.indices)]

    def totals(self, heat: Ints) -> Ints:
        """Return the sum over each group of one value a row."""
        if not len(heat):
            return heat
        totals: Ints = np.add.reduceat(heat, self.starts[:-1])
        return totals

    def shared(self, totals: Ints) -> Ints:
        """Return the groups of more than one row with a total above 0, largest first."""
        order = np.lexsort((self.starts[:-1], -totals))
        largest: Ints = order[(np.diff(self.starts)[order] > 1) & (totals[order] > 0)]
        return largest

    def alone(self) -> Ints:
        """Return the rows that are a group of their own."""
        rows: Ints = self.starts[:-1][np.diff(self.starts) == 1]
        return rows

    def groups(self, order: Iterable[int], vectors: Matrix) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, their vectors) of groups in the order given, which is read as needed."""
        batch: list[slice] = []
        for group in order:
            rows = slice(int(self.starts[group]), int(self.starts[group + 1]))
            if batch and sum(map(_size, batch)) + _size(rows) > HELD:
                yield from self._read(batch, vectors)
                batch = []
            batch.append(rows)
        yield from self._read(batch, vectors)

    def _read(self, batch: Sequence[slice], vectors: Matrix) -> Iterator[tuple[slice, Floats]]:
        texts = pa.chunked_array(
            [c for rows in batch for c in self.text.slice(rows.start, _size(rows)).chunks],
            pa.string(),
        )
        held = vectors.matrix(texts.to_pylist()) if batch else np.zeros((0, 0), np.float32)
        start = 0
        for rows in batch:
            yield rows, held[start : start + _size(rows)]
            start += _size(rows)


def lay_out(prompts: pa.Table, candidates: pa.Table, warm: pa.Table) -> Points:
    """Return the points of a layer whose entries answer similar prompts of an equal context.

    Args:
        prompts: Demand: tenant, context_digest, text_digest, response_digest, text, near_of,
            heat_micro.
        candidates: Rows of the `plan` table; `key_digest` is a prompt's response_digest.
        warm: Items that are warm already, rows of the `plan` table; those that nobody asks for
            any more are added as points without heat, for they may serve others.
    """
    extra = _unasked(warm, prompts)
    tenant, context, digest, text_digest, text, near_of = (
        pa.chunked_array([*_chunks(prompts, ours), *_chunks(extra, theirs)], pa.string())
        for ours, theirs in (
            ("tenant", "tenant"),
            ("context_digest", "context_digest"),
            ("response_digest", "key_digest"),
            ("text_digest", "text_digest"),
            ("text", "text"),
            ("near_of", "text_digest"),
        )
    )
    heat = np.concatenate([ints(prompts["heat_micro"]), np.zeros(extra.num_rows, np.int64)])
    rank = np.empty(len(heat), np.int64)
    by_digest = pc.sort_indices(
        pa.table({"digest": digest, "tenant": tenant}),
        [("digest", "ascending"), ("tenant", "ascending")],
    )
    rank[ints(by_digest)] = np.arange(len(rank))
    group = _numbers(joined(tenant, context, _signatures(text)))
    order = np.lexsort((rank, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    key = joined(tenant, digest)
    return Points(
        rank=rank[order],
        heat=heat[order],
        candidate=place_of(key, joined(candidates["tenant"], candidates["key_digest"]))[order],
        family=_families(text_digest, near_of)[order],
        key=key.take(pa.array(order)),
        text=text_digest.take(pa.array(order)),
        starts=np.append(starts, len(order)),
    )


def ints(column: Any) -> Ints:
    """Return a column of whole numbers without nulls as an array."""
    return np.asarray(column.to_numpy(), dtype=np.int64)


def joined(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return columns of text as one, so that rows agree in it where they agree in all."""
    filled = [pc.fill_null(column, "") for column in columns]
    return pc.binary_join_element_wise(*filled, "\0")


def place_of(values: pa.ChunkedArray, among: pa.ChunkedArray) -> Ints:
    """Return for each value the first row of another column that holds it, -1: none does."""
    found = pc.index_in(values, value_set=among.combine_chunks())
    return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)


def _unasked(warm: pa.Table, prompts: pa.Table) -> pa.Table:
    asked = joined(prompts["tenant"], prompts["response_digest"])
    return warm.filter(pa.array(place_of(joined(warm["tenant"], warm["key_digest"]), asked) < 0))


def _chunks(table: pa.Table, name: str) -> list[pa.Array]:
    return list(table[name].chunks)


def _numbers(values: pa.ChunkedArray) -> Ints:
    encoded = values.combine_chunks().dictionary_encode()
    return ints(encoded.indices)


def _signatures(text: pa.ChunkedArray) -> pa.ChunkedArray:
    encoded = pc.fill_null(text, "").combine_chunks().dictionary_encode()
    each = pa.array([signature(t) for t in encoded.dictionary.to_pylist()], pa.string())
    return pa.chunked_array([each.take(encoded.indices)])


def _families(text_digest: pa.ChunkedArray, near_of: pa.ChunkedArray) -> Ints:
    """Number the near duplicates alike, also where the days disagree on who stands for whom."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(text_digest)
    both = pa.chunked_array([*text_digest.chunks, *pc.coalesce(near_of, text_digest).chunks])
    number = _numbers(both)
    edges = coo_array(
        (np.ones(count, np.int8), (number[:count], number[count:])),
        shape=(number.max(initial=0) + 1,) * 2,
    )
    labels = connected_components(edges, directed=False)[1]
    return np.asarray(labels[number[:count]], dtype=np.int64)


def _size(rows: slice) -> int:
    return int(rows.stop - rows.start)
