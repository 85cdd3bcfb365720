"""The stage that calibrates thresholds: labelled or logged pairs -> thresholds, threshold_pairs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.embed.encoder import Encoder, Floats
from warmup_lib.embed.opening import open_encoder
from warmup_lib.embed.texts import encode_texts
from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.errors import InputDataError
from warmup_lib.keys import Keys
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.tables import THRESHOLD_PAIRS, THRESHOLDS
from warmup_lib.threshold.bounds import (
    LEAST,
    Calibrated,
    Mask,
    calibrate,
    equal_only,
    hits_needed,
    lower_limit,
)
from warmup_lib.threshold.force import rows_in_force
from warmup_lib.threshold.labelled import read_pairs
from warmup_lib.threshold.logged import logged_pairs
from warmup_lib.threshold.pairs import EVERYONE, Found, Pair

Show = Callable[[Pair, str, str], None]
"""Shows a pair and its two texts to the user alone."""

_SHOWN = 20


def run(
    lake: Lake,
    day: str,
    config: Config,
    keys: Keys,
    *,
    pairs: Path | None = None,
    keep_labelled: bool = False,
    show: Show | None = None,
    progress: Progress = silent,
) -> StageReport:
    """Calibrate the threshold of each tenant; replaces its rows of `day`.

    Tenants with too few pairs to show anything are calibrated together. Who has no pairs keeps what
    he had.

    Args:
        lake: The lake.
        day: Day from which on the thresholds are in force, ISO date; the last one that is read.
        config: The settings.
        keys: The key builder.
        pairs: A user's file of labelled pairs; None: the lake's history.
        keep_labelled: Leave tenants alone whose threshold in force is from such a file.
        show: Given the texts of the nearest wrong hits, which are in no report.
        progress: Told how many texts are encoded.

    Raises:
        InputDataError: The file can't be used, or the history holds nothing.
        ConfigError: The encoder can't be opened.
    """
    begun = time.perf_counter()
    encoder = open_encoder(config)
    found = (
        _of_log(lake, day, config, encoder)
        if pairs is None
        else _of_file(pairs, config, keys, encoder, progress)
    )
    source = "log" if pairs is None else "pairs"
    before = rows_in_force(lake, encoder.fingerprint)
    kept = {t for t, row in before.items() if keep_labelled and row["source"] == "pairs"}
    by_tenant = _by_tenant([pair for pair in found.pairs if pair.tenant not in kept])
    rows = [
        _row(tenant, made, encoder.fingerprint, config, together, source)
        for tenant, made, together in _calibrated(by_tenant, config)
    ]
    used = [pair for ours in by_tenant.values() for pair in ours]
    if rows:
        _store(lake, day, encoder.fingerprint, rows, used)
    wrong = _nearest_wrong(rows, used)
    if show is not None:
        for pair in wrong:
            show(pair, found.texts[pair.a_digest], found.texts[pair.b_digest])
    facts = {
        "day": day,
        "source": source,
        "encoder": encoder.fingerprint,
        "configured": config.encoder.threshold,
        "tenants": {row["tenant"]: _facts(row) for row in rows},
        "wrong_hits": [vars(pair) for pair in wrong],
        "refused_by_guard": {"pairs": found.refused, "wrong": found.refused_wrong},
        "unusable": dict(found.unusable),
        "kept_labelled": sorted(kept & {pair.tenant for pair in found.pairs}),
    }
    return StageReport(
        "threshold",
        len(found.pairs),
        len(rows),
        time.perf_counter() - begun,
        (*_notes(rows, config), *(f"{t}: {why}" for t, why in found.unusable.items())),
        facts,
    )


def _nearest_wrong(rows: Sequence[Mapping[str, Any]], pairs: Sequence[Pair]) -> list[Pair]:
    """Return the nearest wrong hits, or where no threshold keeps the bound, wrong pairs."""
    held = {row["tenant"]: row["threshold"] if row["verdict"] == "kept" else LEAST for row in rows}
    wrong = [p for p in pairs if p.wrong and p.similarity >= held[p.tenant]]
    order = sorted(wrong, key=lambda p: (-p.similarity, p.tenant, p.a_digest, p.b_digest))
    return order[:_SHOWN]


def _of_log(lake: Lake, day: str, config: Config, encoder: Encoder) -> Found:
    first = (date.fromisoformat(day) - config.forecast.lookback).isoformat()
    days = [d for d in lake.days("prompts") if first < d <= day]
    if not days:
        raise InputDataError(f"no prompts up to {day}: `warmup plan --day {day}` makes them")
    vectors = LakeVectors(lake, encoder.fingerprint)
    settings = config.threshold
    return logged_pairs(lake, days, vectors, settings.bound, settings.confidence)


def _of_file(file: Path, config: Config, keys: Keys, encoder: Encoder, progress: Progress) -> Found:
    def encode(texts: Sequence[str]) -> Any:
        size = config.encoder.batch_size
        return encode_texts(encoder, texts, size, lambda n: progress("embed", n, len(texts)))

    return read_pairs(file, keys, encode)


def _by_tenant(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    grouped: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.similarity >= LEAST:
            grouped[pair.tenant].append(pair)
    return dict(sorted(grouped.items()))


def _calibrated(
    by_tenant: Mapping[str, Sequence[Pair]], config: Config
) -> list[tuple[str, Calibrated, int]]:
    """Return each tenant's calibration, and how many tenants' pairs it is from.

    Who is pooled is told by the number of pairs alone, so that it can't favour any outcome. A
    tenant whose own few pairs show that the common threshold breaks the bound for it gets none.
    """
    settings = config.threshold
    needed = hits_needed(0, settings.bound, settings.confidence)
    small = [tenant for tenant, pairs in by_tenant.items() if len(pairs) < needed]
    pooled = _calibrate([pair for tenant in small for pair in by_tenant[tenant]], config)
    return [
        (tenant, _own_or(pooled, pairs, config), len(small))
        if tenant in small
        else (tenant, _calibrate(pairs, config), 1)
        for tenant, pairs in by_tenant.items()
    ]


def _own_or(pooled: Calibrated, pairs: Sequence[Pair], config: Config) -> Calibrated:
    if pooled.verdict != "kept" or pooled.threshold is None:
        return pooled
    bound, confidence = config.threshold.bound, config.threshold.confidence
    similarity, wrong = _columns(pairs)
    served = similarity >= pooled.threshold
    broken = lower_limit(int((wrong & served).sum()), int(served.sum()), confidence) > bound
    return equal_only(similarity, wrong, confidence) if broken else pooled


def _calibrate(pairs: Sequence[Pair], config: Config) -> Calibrated:
    return calibrate(*_columns(pairs), config.threshold.bound, config.threshold.confidence)


def _columns(pairs: Sequence[Pair]) -> tuple[Floats, Mask]:
    similarity = np.array([pair.similarity for pair in pairs], np.float32)
    return similarity, np.array([pair.wrong for pair in pairs], np.bool_)


def _row(
    tenant: str, made: Calibrated, encoder: str, config: Config, together: int, source: str
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "encoder": encoder,
        "bound": config.threshold.bound,
        "confidence": config.threshold.confidence,
        "tenants": together,
        "source": source,
        **vars(made),
    }


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("tenant", "encoder")}


def _store(
    lake: Lake, day: str, encoder: str, rows: list[dict[str, Any]], pairs: Sequence[Pair]
) -> None:
    """Replace the tenants' rows of a day; those of other tenants and encoders stay."""
    tenants = pa.array([row["tenant"] for row in rows])
    made = [vars(pair) | {"encoder": encoder} for pair in pairs]
    for table, new in ((THRESHOLD_PAIRS, made), (THRESHOLDS, rows)):
        old = lake.read(table.name, {"day": day})
        ours = pc.and_(
            pc.equal(old["encoder"], encoder), pc.is_in(old["tenant"], value_set=tenants)
        )
        whole = [old.filter(pc.invert(ours)), pa.Table.from_pylist(new, schema=table.schema)]
        lake.replace(table.name, {"day": day}, pa.concat_tables(whole))


def _notes(rows: Sequence[Mapping[str, Any]], config: Config) -> list[str]:
    notes = []
    if not rows:
        notes.append(f"no pairs: encoder.threshold {config.encoder.threshold} stands")
    for row in rows:
        whose = "everyone else" if row["tenant"] == EVERYONE else row["tenant"]
        if row["verdict"] == "too_few":
            notes.append(
                f"{whose}: {row['pairs']:,} pairs show nothing yet, encoder.threshold "
                f"{config.encoder.threshold} stands"
            )
        elif row["verdict"] == "none_keeps":
            notes.append(
                f"{whose}: no similarity was shown to keep wrong hits under {row['bound']:.2%}: "
                "answers are served to equal questions only"
            )
    return notes
