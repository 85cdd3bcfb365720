"""What the layers choose from: the history's prompts and heads with their heat, read by DuckDB.

Counts are added up over the history first, on the digests alone; text and answer are then taken
from the one day each belongs to, so that only the result holds them. DuckDB spills what does not
fit in its memory. The result is one row a prompt: that is what the layers see at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.errors import InputDataError
from warmup_lib.forecast.window import history
from warmup_lib.lake import Lake
from warmup_lib.layers.demand import Demand
from warmup_lib.plan.corpus import read_chunks, read_members
from warmup_lib.plan.lengths import read_lengths
from warmup_lib.plan.segments import read_segments
from warmup_lib.tables import HEADS, INT, PROMPTS, Table

_SUMS = ("requests", "cache_hits", "bypassed", "failed")
_KEYS = {"prompts": ("prompt", "response_digest"), "heads": ("head", "head_digest")}
# A request that goes round the caches is demand and never a hit. A model host keeps its prefixes
# for it too.
_HEAT = {
    "prompts": "heat_micro * (counted.requests - counted.bypassed) // counted.requests",
    "heads": "heat_micro",
}


def read_demand(
    lake: Lake,
    day: str,
    config: Config,
    encoder: str,
    dimension: int,
    *,
    since: str | None = None,
    tenants: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> Demand:
    """Return the demand that is known after `day`.

    Counts are those of the whole lookback, text and the reason not to warm those of the latest
    day, and the answer that of the latest day that has one. Heat is expected requests a day that
    may find something warm.

    Args:
        lake: The lake.
        day: Last log day taken in, ISO date.
        config: The settings.
        encoder: Fingerprint of the encoder whose vectors the items will use.
        dimension: Length of its vectors.
        since: Keep only what was asked on or after this day, ISO date.
        tenants: Keep only these.
        models: Keep only these.

    Raises:
        InputDataError: `day` is no ISO date, it was not distilled or forecast, or has documents
            and was not clustered.
    """
    days = history_days(lake, day, config)
    if lake.manifest("heat", {"day": day}) is None:
        raise InputDataError(f"no heat for {day}: run `forecast` for it first")
    bounds: dict[str, Any] = {"first": days[0], "day": day, "since": since or days[0]}
    keep = "counted.last_day >= CAST($since AS DATE)"
    for name, values in (("tenant", tenants), ("model", models)):
        if values is not None:
            bounds[name] = list(values)
            keep += f" AND list_contains(${name}, latest.{name})"
    connection = lake.sql()
    try:
        prompts, heads = (
            connection.sql(_query(table, keep), params=bounds)
            .to_arrow_table()
            .cast(table.schema.append(pa.field("heat_micro", INT)))
            for table in (PROMPTS, HEADS)
        )
        chunks = read_chunks(lake, day, tenants)
        members = read_members(lake, connection, day, chunks)
        segments = read_segments(connection, prompts, days[0], day, config)
        lengths = read_lengths(connection, bounds, config)
    finally:
        connection.close()
    return Demand(
        day,
        prompts,
        heads,
        encoder,
        dimension,
        lengths=lengths,
        segments=segments,
        members=members,
        chunks=chunks,
        vectors=LakeVectors(lake, encoder),
    )


def history_days(lake: Lake, day: str, config: Config) -> tuple[str, ...]:
    """Return the days of the lookback that have prompts, oldest first.

    Raises:
        InputDataError: `day` is no ISO date, or it was not distilled.
    """
    return history(lake.days("prompts"), day, config.forecast.lookback).days


def _query(table: Table, keep: str) -> str:
    level, key = _KEYS[table.name]
    names = table.schema.names
    sums = [f"CAST(SUM({name}) AS BIGINT) AS {name}" for name in _SUMS if name in names]
    source = dict.fromkeys(names, "latest") | dict.fromkeys(_SUMS, "counted")
    source |= {"first_ts": "counted", "last_ts": "counted", "response": "answered"}
    first = "MIN(first_ts) AS first_ts," if "first_ts" in names else ""
    answer_day = "MAX(day) FILTER (response IS NOT NULL)" if "response" in names else "MAX(day)"
    return f"""
    WITH counted AS (
        SELECT tenant, {key}, {", ".join(sums)}, {first} MAX(last_ts) AS last_ts,
            MAX(day) AS last_day, {answer_day} AS answer_day
        FROM {table.name}
        WHERE day BETWEEN CAST($first AS DATE) AND CAST($day AS DATE)
        GROUP BY tenant, {key}
    )
    SELECT {", ".join(f"{source[name]}.{name}" for name in names)},
        CAST(COALESCE({_HEAT[table.name]}, 0) AS BIGINT) AS heat_micro
    FROM counted
    INNER JOIN {table.name} AS latest
        ON latest.tenant = counted.tenant AND latest.{key} = counted.{key}
        AND latest.day = counted.last_day
    LEFT JOIN {table.name} AS answered
        ON answered.tenant = counted.tenant AND answered.{key} = counted.{key}
        AND answered.day = counted.answer_day
    LEFT JOIN heat
        ON heat.day = CAST($day AS DATE) AND heat.level = '{level}'
        AND heat.tenant = counted.tenant AND heat.digest = counted.{key}
    WHERE {keep}
    ORDER BY counted.tenant, counted.{key}
    """
