"""FAISS files of chunks and lists, for applications whose Redis has no vector search.

One file a tenant and kind lies in the lake beside the tables, each with a JSON file of the names
of its rows: the chunk ids, or the medoids whose lists are on the Redis under their keys.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from typing import Any

import numpy as np

from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.layers.base import PlanItem, Vector, Vectors
from warmup_lib.layers.lists import TIER

_FOLDER = "_retrieval"
KINDS = {None: "chunks", TIER: "lists"}


def write_index_files(
    lake: Lake, plan_id: str, items: Sequence[PlanItem], vectors: Vectors, keys: Keys
) -> str:
    """Write the files of a plan's `retrieval` items; return their folder.

    Memory: the vectors of one tenant.

    Args:
        lake: The lake.
        plan_id: The plan.
        items: Its items in `retrieval`.
        vectors: Their vectors.
        keys: The key builder: a tenant's files are named by its hash.
    """
    folder = posixpath.join(lake.root, _FOLDER, plan_id)
    lake.fs.makedirs(folder, exist_ok=True)
    for tenant in sorted({item.tenant for item in items}):
        for tier, kind in KINDS.items():
            ours = [i for i in items if i.tenant == tenant and i.tier == tier]
            held = vectors.get([item.text_digest or "" for item in ours])
            rows = [item for item in ours if item.text_digest in held]
            names = [_name(item) for item in rows]
            matrix = np.array([held[i.text_digest or ""] for i in rows], dtype=np.float32)
            path = posixpath.join(folder, f"{keys.scope(tenant)}.{kind}")
            lake.fs.pipe_file(f"{path}.faiss", _packed(matrix.reshape(len(rows), -1), vectors))
            lake.fs.pipe_file(f"{path}.json", json.dumps(names).encode())
    return folder


def nearest_in_file(
    lake: Lake, folder: str, scope: str, kind: str, vector: Vector, count: int
) -> list[tuple[str, float]]:
    """Return the names of the nearest rows of one file with their cosines, nearest first.

    Args:
        lake: The lake.
        folder: What `write_index_files` returned.
        scope: The tenant's hash, `Keys.scope`.
        kind: `chunks` or `lists`.
        vector: A vector of length 1 under the same encoder.
        count: Most rows to return.
    """
    import faiss

    path = posixpath.join(folder, f"{scope}.{kind}")
    index = faiss.deserialize_index(np.frombuffer(lake.fs.cat_file(f"{path}.faiss"), np.uint8))
    names: list[str] = json.loads(lake.fs.cat_file(f"{path}.json"))
    cosines, rows = index.search(np.asarray(vector, np.float32)[None], min(count, len(names)))
    return [(names[row], float(cosine)) for row, cosine in zip(rows[0], cosines[0], strict=True)]


def _name(item: PlanItem) -> str:
    return item.key_digest if item.tier == TIER else (item.chunk_ids or [""])[0]


def _packed(matrix: Any, vectors: Vectors) -> bytes:
    import faiss

    index = faiss.IndexFlatIP(vectors.dimension)
    if len(matrix):
        index.add(matrix)
    packed: bytes = faiss.serialize_index(index).tobytes()
    return packed
