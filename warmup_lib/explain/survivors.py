"""Until when a Redis is known to have kept what a plan wrote: it can't have been flushed before."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from warmup_lib.explain.misses import evidence_of
from warmup_lib.explain.standing import WARM, Standing
from warmup_lib.keys import key_hash

if TYPE_CHECKING:
    import pyarrow as pa


def survivors(rows: pa.Table, standing: Standing) -> dict[str, datetime]:
    """Return for each target the latest request that found an entry which was never missing.

    An entry that was missing before may have been written again by the gateway.

    Args:
        rows: Rows of `requests` with what their gateways saw.
        standing: What is known of the plan's items.
    """
    warmed = {
        row["key_hash"]: target
        for (_, target), row in standing.receipts.items()
        if row["status"] in WARM and row["key_hash"]
    }
    missing: set[str] = set()
    latest: dict[str, datetime] = {}
    for row in rows.select(["ts", "extra"]).sort_by("ts").to_pylist():
        evidence = evidence_of(row["extra"])
        for look in evidence.looked if evidence is not None else ():
            key = key_hash(look.nearest or look.key)
            if look.found == "hit" and key in warmed and key not in missing:
                latest[warmed[key]] = row["ts"]
            elif look.found == "absent":
                missing.add(key)
    return latest
