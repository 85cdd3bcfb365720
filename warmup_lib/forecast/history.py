"""The counts that estimators are tried on: requests by item and day, read from the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from warmup_lib.forecast.rolling import Counts

if TYPE_CHECKING:
    import duckdb

LEVELS = {
    "prompt": ("prompts", "response_digest"),
    "head": ("heads", "head_digest"),
    "text": ("prompts", "text_digest"),
}
"""Level of demand -> its table of counts, and the column with the identity."""

SAMPLE = 400_000
"""Items tried on. Of more, those are taken whose digests are lowest: a fair draw of hashes."""

_DIGITS = 8

_ITEMS = """
SELECT COUNT(DISTINCT (tenant, {digest})) FROM {table}
WHERE day IN (SELECT CAST(UNNEST($days) AS DATE))
"""
_COUNTS = """
SELECT tenant, {digest} AS digest, CAST(day AS VARCHAR) AS day, SUM(requests) AS requests
FROM {table}
WHERE day IN (SELECT CAST(UNNEST($days) AS DATE)) AND {digest} < $below
GROUP BY ALL
ORDER BY ALL
"""
ANSWERED = """
served_from IS NULL
AND NOT COALESCE(cache_hit, false)
AND NOT COALESCE(warmup, false)
AND NOT COALESCE(health, false)
AND COALESCE(status, 200) < 400
"""
"""Which rows of `requests` a model host answered: their latencies are those of waiting."""

_PRESSURE = f"""
SELECT tenant, quantile_disc(ttft_ms, 0.95) AS first_token_ms
FROM requests
WHERE day IN (SELECT CAST(UNNEST($days) AS DATE)) AND ttft_ms IS NOT NULL AND {ANSWERED}
GROUP BY tenant
ORDER BY tenant
"""


def read_counts(
    connection: duckdb.DuckDBPyConnection, level: str, days: Sequence[str]
) -> tuple[Counts, float]:
    """Return the history of one level, and the share of its items that it holds.

    Args:
        connection: The lake.
        level: One of `LEVELS`.
        days: Days to read, oldest first.
    """
    from scipy.sparse import csc_array

    table, digest = LEVELS[level]
    named: dict[str, Any] = {"table": table, "digest": digest}
    counted = connection.sql(_ITEMS.format(**named), params={"days": list(days)})
    share = min(1.0, SAMPLE / max(1, counted.fetchall()[0][0]))
    below = "~" if share == 1 else f"{int(share * 16**_DIGITS):0{_DIGITS}x}"
    bounds = {"days": list(days), "below": below}
    rows = connection.sql(_COUNTS.format(**named), params=bounds).fetchnumpy()
    tenants, tenant = np.unique(rows["tenant"].astype(str), return_inverse=True)
    _, text = np.unique(rows["digest"].astype(str), return_inverse=True)
    items, item = np.unique(tenant * (len(text) + 1) + text, return_inverse=True)
    day = np.searchsorted(np.array(days), rows["day"].astype(str))
    requests = np.asarray(rows["requests"], np.float64)
    matrix = csc_array((requests, (item, day)), shape=(len(items), len(days)))
    of = np.asarray(items // (len(text) + 1), np.int64)
    return Counts(tuple(days), matrix, of, tuple(map(str, tenants))), share


def read_pressure(
    connection: duckdb.DuckDBPyConnection, days: Sequence[str], aimed_ms: float
) -> Mapping[str, float]:
    """Return by tenant how many times longer than aimed at first tokens take (P95), 1 at least.

    Args:
        connection: The lake.
        days: Days to read.
        aimed_ms: First-token time aimed at.
    """
    rows = connection.sql(_PRESSURE, params={"days": list(days)}).fetchall()
    return {tenant: max(1.0, measured / aimed_ms) for tenant, measured in rows}
