"""Trap `key_dimensions`: user, device, region, hour or arm in a key multiply one meaning's keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from warmup_lib.doctor.base import Part, counted
from warmup_lib.doctor.log import Log
from warmup_lib.doctor.splits import FEW, Splits
from warmup_lib.doctor.store import Kept, Stored, differing

ALLOWED = (
    "Keep the key to the fields that change the answer (docs/keys.md); `warmup dimensions` "
    "suggests the list."
)


def look_at_log(log: Log, splits: Splits) -> Part:
    """Look for prompts whose keys differ by fields that change no answer."""
    if not any(row.keys for row in log.rows):
        return Part("not_checked", "the log holds no cache keys (`cache_key`, `cache_evidence`)")
    split = splits.of("fields")
    if len(split) >= FEW:
        names = Counter(name for one in split for name in one.fields)
        told = (
            f"{counted(len(split), 'prompt')} have {sum(s.keys for s in split):,} keys by "
            f"{', '.join(name for name, _ in names.most_common())}"
        )
        return Part("found", told, ALLOWED)
    return Part("ok", f"{counted(splits.prompts, 'repeated prompt')} keep one key each")


def look_at_store(kept: Kept, tenants: int | None) -> Part:
    """Look for one answer that a Redis keeps under several keys of one tenant.

    Args:
        kept: What it holds.
        tenants: How many tenants there are; None: not known. Where keys are digests alone, each
            of them may rightly have a key of its own.
    """
    if not kept.values:
        return Part("not_checked", kept.empty)
    several = [(same, by) for same in kept.copies() if (by := _names(same, tenants))]
    if len(several) >= FEW:
        keys = sum(len(same) for same, _ in several)
        names = Counter(name for _, found in several for name in found)
        told = (
            f"the Redis keeps {counted(len(several), 'answer')} under {keys:,} keys, by "
            f"{', '.join(name for name, _ in names.most_common())}"
        )
        return Part("found", told, ALLOWED)
    return kept.sound(f"the Redis keeps {counted(len(kept.values), 'answer')} under one key each")


def _names(same: Sequence[Stored], tenants: int | None) -> set[str]:
    """Return in what the keys of one answer differ; empty: in nothing that matters, or unknown."""
    if found := differing(same):
        return found
    return {"something hashed into them"} if tenants and len(same) > tenants else set()
