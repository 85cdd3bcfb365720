"""Reads an id trace from the lake's requests: what each layer would have been asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warmup_lib.errors import InputDataError
from warmup_lib.forecast.trace import Ints, Reals, Trace, trace_of
from warmup_lib.lake import Lake

ITEMS = {
    "responses": ("response_digest", "latency_ms", "strlen(response)"),
    "embeddings": ("text_digest", None, None),
    "prefixes": ("head_digest", "ttft_ms", None),
}
"""Layer -> identity of its items, milliseconds that a hit saves at most, bytes of an item."""

_ACCESSES = """
WITH asked AS (
    SELECT
        epoch_us(ts) AS asked_at,
        concat(tenant, chr(31), {identity}) AS item,
        CASE WHEN COALESCE(cache_hit, false) THEN NULL ELSE {cost} END AS cost,
        {size} AS size,
        request_id
    FROM requests
    WHERE
        day IN (SELECT CAST(UNNEST($days) AS DATE))
        AND {identity} IS NOT NULL
        AND NOT COALESCE(warmup, false)
        AND NOT COALESCE(health, false)
        AND NOT COALESCE(bypass, false)
)
SELECT
    asked_at,
    item,
    COALESCE(cost, AVG(cost) OVER (PARTITION BY item), 0) AS cost,
    COALESCE(size, AVG(size) OVER (PARTITION BY item), 0) AS size
FROM asked
ORDER BY asked_at, request_id, item
"""


def lake_trace(lake: Lake, days: Sequence[str], layer: str) -> Trace:
    """Return what a layer would have been asked for on some days; requests round caches left out.

    Args:
        lake: The lake.
        days: ISO dates.
        layer: One of `ITEMS`.

    Raises:
        InputDataError: There are no requests.
    """
    identity, cost, size = ITEMS[layer]
    query = _ACCESSES.format(
        identity=identity,
        cost=cost or "CAST(NULL AS DOUBLE)",
        size=size or "CAST(NULL AS DOUBLE)",
    )
    connection = lake.sql()
    try:
        rows = connection.sql(query, params={"days": list(days)}).to_arrow_table()
    finally:
        connection.close()
    if not rows.num_rows:
        raise InputDataError("the lake holds no requests of those days: ingest logs first")
    item = rows["item"].combine_chunks().dictionary_encode().indices
    at: Ints = np.asarray(rows["asked_at"], np.int64)
    costs: Reals = np.asarray(rows["cost"], np.float64)
    sizes: Reals = np.asarray(rows["size"], np.float64)
    return trace_of(
        at, np.asarray(item, np.int64), costs if cost else None, sizes if size else None
    )
