"""How long the prompts of each model are: buckets of lengths that get equal shares of its heat."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.tables import INT, STR

if TYPE_CHECKING:
    import duckdb

SCHEMA = pa.schema(
    [
        ("model", STR),
        ("model_revision", STR),
        ("tokens", INT),
        ("requests", INT),
        ("heat_micro", INT),
    ]
)
# A model works for what goes round the caches too, and never did for what only failed.
_LENGTHS = """
WITH counted AS (
    SELECT tenant, response_digest, MIN(model) AS model, MIN(model_revision) AS model_revision,
        MAX(prompt_tokens) AS tokens, CAST(SUM(requests) AS BIGINT) AS requests,
        MAX(day) AS last_day
    FROM prompts
    WHERE day BETWEEN CAST($first AS DATE) AND CAST($day AS DATE)
    GROUP BY tenant, response_digest
    HAVING SUM(failed) < SUM(requests)
)
SELECT model, model_revision, tokens, CAST(SUM(requests) AS BIGINT) AS requests,
    CAST(SUM(heat.heat_micro) AS BIGINT) AS heat_micro
FROM counted
INNER JOIN heat
    ON heat.day = CAST($day AS DATE) AND heat.level = 'prompt'
    AND heat.tenant = counted.tenant AND heat.digest = counted.response_digest
WHERE tokens > 0 AND counted.last_day >= CAST($since AS DATE) {keep}
GROUP BY model, model_revision, tokens
HAVING SUM(heat.heat_micro) > 0
ORDER BY model, model_revision NULLS FIRST, tokens
"""


def read_lengths(
    connection: duckdb.DuckDBPyConnection, bounds: Mapping[str, Any], config: Config
) -> pa.Table:
    """Return the length buckets of every model that is asked for.

    Args:
        connection: A connection to the lake.
        bounds: Which demand counts: `first`, `day` and `since` as ISO dates; `tenant` and `model`
            as lists, where only these are kept.
        config: The settings.

    Returns:
        Columns `model`, `model_revision`, `tokens` (longest prompt of the bucket), `requests`,
        `heat_micro`.
    """
    kept = [
        f"AND list_contains(${name}, counted.{name})"
        for name in ("tenant", "model")
        if name in bounds
    ]
    query = _LENGTHS.format(keep=" ".join(kept))
    rows = connection.sql(query, params=dict(bounds)).to_arrow_table()
    weights = config.layers.weights
    return buckets(rows.cast(SCHEMA), min(weights.buckets, weights.steps))


def buckets(lengths: pa.Table, count: int) -> pa.Table:
    """Return up to `count` buckets a model and revision, each of an equal share of its heat.

    The bounds are weighted quantiles of the heat; the last one is the longest prompt. Where one
    length has the heat of several buckets, there are fewer of them.

    Args:
        lengths: One row a model, revision and length, in this order: the columns of the result,
            with heat above 0.
        count: Most buckets of a model.
    """
    rows: list[dict[str, Any]] = []
    for _, of_model in groupby(
        lengths.to_pylist(), key=lambda row: (row["model"], row["model_revision"])
    ):
        rows += _of_model(list(of_model), count)
    return pa.Table.from_pylist(rows, SCHEMA)


def _of_model(lengths: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    total = sum(row["heat_micro"] for row in lengths)
    made: list[dict[str, Any]] = []
    seen, full = 0, True
    for row in lengths:
        if full:
            made.append(dict(row))
        else:
            added = {name: made[-1][name] + row[name] for name in ("requests", "heat_micro")}
            made[-1] |= added | {"tokens": row["tokens"]}
        before, seen = seen, seen + row["heat_micro"]
        # A bound lies where the heat so far passes another multiple of total / count.
        full = before * count // total < seen * count // total
    return made
