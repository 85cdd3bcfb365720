"""One tenant's texts as clusters: grouped, ranked by heat, and named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warmup_lib.cluster.keywords import keywords
from warmup_lib.cluster.kmeans import Floats, cluster_count, most_typical, spherical_kmeans
from warmup_lib.config import ClusterConfig
from warmup_lib.tables import MICRO

_LABEL = 160


@dataclass(frozen=True)
class Texts:
    """A tenant's distinct texts, sorted by digest.

    Attributes:
        tenant: The tenant.
        digests: Identities.
        texts: As stored, redacted.
        clean: Nothing was redacted in it.
        heat_micro: Expected requests a day, in millionths.
        requests: Requests of the history.
        vectors: float32 (n, d), rows of length 1.
    """

    tenant: str
    digests: Sequence[str]
    texts: Sequence[str]
    clean: np.ndarray[Any, np.dtype[np.bool_]]
    heat_micro: np.ndarray[Any, np.dtype[np.int64]]
    requests: np.ndarray[Any, np.dtype[np.int64]]
    vectors: Floats


@dataclass(frozen=True)
class Cluster:
    """One cluster: its row of the `clusters` table, and those of `members`."""

    row: dict[str, Any]
    members: list[dict[str, Any]]


def clusters(texts: Texts, config: ClusterConfig) -> Iterator[Cluster]:
    """Yield a tenant's clusters, largest heat first.

    Heat decides where the centres lie, but a text without any still has a place.
    """
    weights = (np.maximum(texts.heat_micro, 1) / MICRO).astype(np.float32)
    count = cluster_count(len(texts.digests), config.per_tenant)
    group, similarity = spherical_kmeans(texts.vectors, weights, count, config.seed)
    named = keywords(texts.texts, group.tolist(), count)
    # Within a cluster rows stay sorted by digest, so the first one settles ties.
    rows_of = [np.flatnonzero(group == number) for number in range(count)]
    ranked = sorted(
        (number for number in range(count) if len(rows_of[number])),
        key=lambda n: (-int(texts.heat_micro[rows_of[n]].sum()), texts.digests[rows_of[n][0]]),
    )
    for rank, number in enumerate(ranked, start=1):
        rows = rows_of[number]
        name = f"{texts.tenant}/{rank:03}"
        medoid = _medoid(texts, rows, weights)
        yield Cluster(
            {
                "cluster_id": name,
                "tenant": texts.tenant,
                "label": _shorten(texts.texts[medoid]),
                "keywords": named[number],
                "medoid": texts.digests[medoid],
                "prompts": len(rows),
                "requests": int(texts.requests[rows].sum()),
                "heat_micro": int(texts.heat_micro[rows].sum()),
            },
            [
                {
                    "cluster_id": name,
                    "tenant": texts.tenant,
                    "text_digest": texts.digests[row],
                    "similarity": float(similarity[row]),
                    "heat_micro": int(texts.heat_micro[row]),
                }
                for row in rows.tolist()
            ],
        )


def _medoid(texts: Texts, rows: np.ndarray[Any, Any], weights: Floats) -> int:
    """Return the row of the most typical text, of those in which nothing was redacted if any."""
    typical = most_typical(texts.vectors[rows], weights[rows])
    clean = texts.clean[rows]
    if clean.any():
        typical = np.where(clean, typical, -np.inf)
    return int(rows[int(typical.argmax())])


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else f"{line[: _LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
