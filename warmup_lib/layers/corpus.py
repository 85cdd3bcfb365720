"""A tenant's chunks and the clusters of its prompts: which chunks are nearest to each cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.layers.base import Vector, Vectors
from warmup_lib.layers.demand import Demand

TIES = 6
"""Decimals of a cosine that count: below them float32 sums differ by their order."""


@dataclass(frozen=True)
class Chunk:
    """One chunk: `text_digest` says which vector is its own."""

    chunk_id: str
    chunk_digest: str
    document: str
    text_digest: str


@dataclass(frozen=True)
class Cluster:
    """One cluster of a tenant's prompts: its most typical text, and its heat."""

    medoid: str
    heat_micro: int


@dataclass(frozen=True)
class Corpus:
    """What one tenant retrieves from, and for whom.

    Attributes:
        tenant: The tenant.
        chunks: Those with a vector, by id.
        vectors: Theirs, as rows.
        without: Those that have none.
        clusters: Those with heat whose medoid has a vector, largest heat first.
        medoids: Their vectors, as rows.
    """

    tenant: str
    chunks: Sequence[Chunk]
    vectors: Vector
    without: Sequence[Chunk]
    clusters: Sequence[Cluster]
    medoids: Vector

    def lists(self, top: int) -> list[list[Chunk]]:
        """Return for each cluster the `top` chunks nearest to its medoid, nearest first."""
        found = nearest_rows(self.vectors, self.medoids, top)
        return [[self.chunks[row] for row in rows] for rows in found]


def corpora(demand: Demand) -> Iterator[Corpus]:
    """Yield the corpus of each tenant that has chunks, by name.

    Memory: the vectors of one tenant's chunks.
    """
    if demand.chunks is None or demand.members is None or demand.vectors is None:
        return
    for tenant in sorted(demand.chunks["tenant"].unique().to_pylist()):
        chunks = demand.chunks.filter(pc.equal(demand.chunks["tenant"], tenant))
        members = demand.members.filter(pc.equal(demand.members["tenant"], tenant))
        yield _corpus(tenant, chunks, members, demand.vectors, demand.dimension)


def _corpus(
    tenant: str, chunks: pa.Table, members: pa.Table, vectors: Vectors, dimension: int
) -> Corpus:
    names = ["chunk_id", "chunk_digest", "document", "text_digest"]
    every = [Chunk(**row) for row in chunks.select(names).sort_by("chunk_id").to_pylist()]
    held = vectors.get([chunk.text_digest for chunk in every])
    known = [chunk for chunk in every if chunk.text_digest in held]
    grouped = members.group_by(["cluster_id", "medoid"], use_threads=False)
    heat = grouped.aggregate([("heat_micro", "sum")]).sort_by(
        [("heat_micro_sum", "descending"), ("cluster_id", "ascending")]
    )
    medoids = vectors.get(heat["medoid"].to_pylist())
    clusters = [
        Cluster(row["medoid"], row["heat_micro_sum"])
        for row in heat.to_pylist()
        if row["heat_micro_sum"] > 0 and row["medoid"] in medoids
    ]
    return Corpus(
        tenant,
        known,
        _stack([held[chunk.text_digest] for chunk in known], dimension),
        [chunk for chunk in every if chunk.text_digest not in held],
        clusters,
        _stack([medoids[cluster.medoid] for cluster in clusters], dimension),
    )


def nearest_rows(vectors: Vector, queries: Vector, top: int) -> list[list[int]]:
    """Return for each query the rows of the `top` vectors of the highest cosine; earlier on ties.

    Args:
        vectors: (n, d), rows of length 1.
        queries: (m, d), rows of length 1.
        top: Most rows a query.
    """
    found = []
    for query in queries:
        cosines = np.round(vectors @ query, TIES)
        found.append(np.lexsort((np.arange(len(vectors)), -cosines))[:top].tolist())
    return found


def source_digest(encoder: str, chunks: Sequence[Chunk]) -> str:
    """Return 32 hex digits that change with the encoder, the chunks' order, ids or content."""
    parts = [encoder]
    for chunk in chunks:
        parts += [chunk.chunk_digest, chunk.document, chunk.text_digest]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _stack(vectors: Sequence[Vector], dimension: int) -> Vector:
    empty: Vector = np.zeros((0, dimension), dtype=np.float32)
    return np.stack(vectors).astype(np.float32) if vectors else empty
