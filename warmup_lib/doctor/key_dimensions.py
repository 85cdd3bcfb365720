"""Trap `key_dimensions`: user, device, region, hour or arm in a key multiply one meaning's keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from warmup_lib.dimensions.codes import Ints, dense
from warmup_lib.dimensions.selection import Evidence, select
from warmup_lib.doctor.base import Part, counted
from warmup_lib.doctor.log import Log
from warmup_lib.doctor.splits import FEW, Splits
from warmup_lib.doctor.store import Kept, Stored, differing
from warmup_lib.keys import canonical_text

ALLOWED = (
    "Keep the key to the fields that change the answer (docs/keys.md); `warmup dimensions` "
    "suggests the list."
)


def look_at_log(log: Log, splits: Splits) -> Part:
    """Look for prompts whose keys differ by fields that change no answer.

    Where the log holds answers, it tells: fields on which they are seen to depend belong there.
    """
    if not any(row.keys for row in log.rows):
        return Part("not_checked", "the log holds no cache keys (`cache_key`, `cache_evidence`)")
    keyed = splits.of("fields")
    needed = _needed(log, sorted({name for one in keyed for name in one.fields}))
    # No vector depends on a field, whatever answers do.
    several = [
        (one, names)
        for one in keyed
        if (names := set(one.fields) - (needed if one.layer == "responses" else set()))
    ]
    rightly = f"; answers depend on {', '.join(sorted(needed))}" if needed else ""
    if len(several) >= FEW:
        told = (
            f"{counted(len(several), 'prompt')} have {sum(s.keys for s, _ in several):,} keys by "
            f"{_listed(names for _, names in several)}"
        )
        return Part("found", f"{told}{rightly}", ALLOWED)
    told = f"{counted(splits.prompts, 'repeated prompt')} keep one key each"
    return Part("ok", f"{told} but for what changes answers{rightly}" if rightly else told)


def _needed(log: Log, names: Sequence[str]) -> set[str]:
    """Return which of the fields answers depend on, by the answers that are no cache's."""
    rows = [
        row
        for row in log.rows
        if row.response and row.served_from is None and (row.status or 200) < 400
    ]
    if not names or not rows:
        return set()
    evidence = Evidence(
        question=_numbered((row.tenant, row.response_digest) for row in rows),
        answer=_numbered(canonical_text(row.response) for row in rows),
        values={name: _numbered(row.fields.get(name, "") for row in rows) for name in names},
    )
    return set(select(evidence, len(names)).needed)


def _numbered(things: Iterable[object]) -> Ints:
    numbers: dict[object, int] = {}
    return dense(np.array([numbers.setdefault(one, len(numbers)) for one in things]))


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
        told = (
            f"the Redis keeps {counted(len(several), 'answer')} under {keys:,} keys, by "
            f"{_listed(names for _, names in several)}"
        )
        return Part("found", told, ALLOWED)
    return kept.sound(f"the Redis keeps {counted(len(kept.values), 'answer')} under one key each")


def _listed(found: Iterable[set[str]]) -> str:
    """Return names, the most frequent first."""
    counts = Counter(name for names in found for name in sorted(names))
    return ", ".join(name for name, _ in counts.most_common())


def _names(same: Sequence[Stored], tenants: int | None) -> set[str]:
    """Return in what the keys of one answer differ; empty: in nothing that matters, or unknown."""
    if found := differing(same):
        return found
    return {"something hashed into them"} if tenants and len(same) > tenants else set()
