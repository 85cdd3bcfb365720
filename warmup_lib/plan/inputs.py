"""What a plan is made from: the encoder, the partitions read, and the id that follows from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from warmup_lib.config import Config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.lake import Lake


def encoder_of(lake: Lake, day: str, config: Config) -> tuple[str, int] | None:
    """Return fingerprint and dimension of the configured encoder, as the lake's vectors have it.

    The newest day that was embedded tells, so that the encoder itself has to be opened only where
    two versions of it did that day. None: nothing was embedded under it up to `day`.
    """
    found: dict[str, dict[str, int]] = {}
    for partition in lake.partitions("vectors"):
        manifest = lake.manifest("vectors", partition)
        if manifest is None or partition["day"] > day:
            continue
        if manifest.meta["encoder_name"] == config.encoder.name:
            of_day = found.setdefault(partition["day"], {})
            of_day[partition["encoder"]] = int(manifest.meta["dimension"])
    if not found:
        return None
    newest = found[max(found)]
    if len(newest) == 1:
        return next(iter(newest.items()))
    encoder = open_encoder(config)
    return encoder.fingerprint, encoder.dimension


def input_digests(
    lake: Lake, days: Iterable[str], day: str, encoder: str, *, clustered: bool = False
) -> dict[str, str]:
    """Return the content digest of each partition that a plan of `day` reads.

    Vectors stored on later days are left out: those of the texts that count here were there
    before, and a vector never changes.
    """
    partitions = [(t, {"day": d}) for d in days for t in ("prompts", "heads", "requests")]
    partitions += [(t, {"day": day}) for t in ("heat", "chunks", "listed")]
    chunks = lake.manifest("chunks", {"day": day})
    if clustered or (chunks is not None and chunks.rows):
        partitions += [(t, {"day": day}) for t in ("clusters", "members")]
    partitions += [
        ("vectors", p)
        for p in lake.partitions("vectors")
        if p["encoder"] == encoder and p["day"] <= day
    ]
    return {
        "/".join([table, *partition.values()]): manifest.content_digest()
        for table, partition in partitions
        if (manifest := lake.manifest(table, partition)) is not None
    }


def same_files(inputs: Mapping[str, str], others: Mapping[str, str]) -> bool:
    """Say whether two plans were made from the same documents and lists of the user's."""

    def files(digests: Mapping[str, str]) -> list[str]:
        return [d for name, d in digests.items() if name.startswith(("chunks/", "listed/"))]

    return files(inputs) == files(others)


def plan_id(made_from: Mapping[str, Any]) -> str:
    """Return the id of a plan: its day, its kind, and 10 hex digits over all it is made from."""
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    return f"{made_from['day']}-{made_from['kind']}-{digest[:10]}"
