"""What A/B tests gave each system prompt, out of the requests themselves, in whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from warmup_lib.tables import INT, STR

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

SCHEMA = pa.schema(
    [
        ("tenant", STR),
        ("model", STR),
        ("locale", STR),
        ("head_digest", STR),
        ("ab_arm", STR),
        ("day", STR),
        ("requests", INT),
        ("score_micro", STR),
        ("square_micro2", STR),
    ]
)
"""Sums of scores in millionths and of their squares, as decimal text: they outgrow 64 bits."""

_SCORES = """
WITH scored AS (
    SELECT *, CAST(ROUND(ab_score * 1000000) AS HUGEINT) AS score
    FROM requests
    WHERE day BETWEEN CAST($first AS DATE) AND CAST($day AS DATE)
        AND ab_arm IS NOT NULL AND isfinite(ab_score)
        AND COALESCE(system_prompt, '') <> ''
        AND NOT COALESCE(warmup, false)
        AND NOT COALESCE(health, false)
        AND NOT COALESCE(status >= 400, false)
        {keep}
)
SELECT tenant, model, locale, head_digest, ab_arm, CAST(day AS VARCHAR) AS day,
    COUNT(*) AS requests,
    CAST(SUM(score) AS VARCHAR) AS score_micro,
    CAST(SUM(score * score) AS VARCHAR) AS square_micro2
FROM scored
GROUP BY tenant, model, locale, head_digest, ab_arm, day
ORDER BY ALL
"""


def read_scores(
    connection: duckdb.DuckDBPyConnection,
    first: str,
    day: str,
    tenants: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> pa.Table:
    """Return one row a tenant, model, locale, head, arm and day: see `SCHEMA`.

    Args:
        connection: The lake's views.
        first: First day of the history, ISO date.
        day: Last one.
        tenants: Only these; None: all.
        models: Only these; None: all.
    """
    bounds: dict[str, Any] = {"first": first, "day": day}
    keep = ""
    for name, values in (("tenant", tenants), ("model", models)):
        if values is not None:
            bounds[name] = list(values)
            keep += f" AND list_contains(${name}, {name})"
    rows = connection.sql(_SCORES.format(keep=keep), params=bounds).to_arrow_table()
    return rows.cast(SCHEMA)
