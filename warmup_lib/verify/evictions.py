"""Entries that a Redis dropped before their time: written, not run out, and not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from warmup_lib.layers.entries import ABSENT
from warmup_lib.targets.store import EVICTED_KEYS, RedisStore

EVICTED = "absent: written, then evicted"

Row = dict[str, Any]


async def explained(
    rows: Sequence[Row],
    receipts: Mapping[tuple[str, str], Mapping[str, Any]],
    target: RedisStore,
    before: Mapping[str, Any] | None,
) -> list[Row]:
    """Return residency rows with the reason why what was written is not there.

    Args:
        rows: Rows of one Redis.
        receipts: The last receipts, by item and target.
        target: The Redis.
        before: Its epoch and how many keys it had evicted before the apply; None: not known.

    Raises:
        TargetUnavailable: It does not answer.
    """
    if all(row["evidence"] != ABSENT for row in rows):
        return list(rows)
    epoch, evicted = await target.epoch(), (await target.facts()).evicted
    if before is not None and before["epoch"] == epoch:
        evicted -= before[EVICTED_KEYS]
    now = datetime.now(UTC)
    return [
        {
            **row,
            "evidence": _reason(receipts.get((row["item_id"], row["target"])), epoch, evicted, now),
        }
        if row["evidence"] == ABSENT
        else row
        for row in rows
    ]


def evicted_entries(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Return by target and layer how many planned entries were evicted."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row["evidence"].startswith(EVICTED):
            found.setdefault(row["target"], Counter())[row["layer"]] += 1
    return {target: dict(sorted(counts.items())) for target, counts in sorted(found.items())}


def _reason(receipt: Mapping[str, Any] | None, epoch: str, evicted: int, now: datetime) -> str:
    if receipt is None or receipt["status"] not in ("warmed", "already"):
        return ABSENT
    if receipt["target_epoch"] != epoch:
        return "absent: written, then the Redis was restarted"
    if receipt["ttl_s"] is None or receipt["at"] + timedelta(seconds=receipt["ttl_s"]) <= now:
        return "absent: written, and its lifetime is over"
    if evicted > 0:
        return f"{EVICTED} (evicted_keys rose by {evicted} since the apply)"
    return "absent: written, then deleted (nothing was evicted since the apply)"
