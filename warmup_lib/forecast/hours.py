"""When in the day requests come: each tenant's share by hour, and the peak.

Heat is a day's. What a candidate is expected to be asked for in one hour is its heat times the
share of that hour for its tenant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warmup_lib.tables import INT, MICRO, STR

if TYPE_CHECKING:
    import duckdb

HOURS = 24
PRIOR = 200
"""Requests of all tenants that a tenant's own hours are mixed with: few of its own tell little."""

_COUNTS = """
SELECT
    tenant,
    CAST(day AS VARCHAR) AS day,
    date_trunc('hour', ts) AS hour,
    COUNT(*) AS requests
FROM requests
WHERE
    day IN (SELECT CAST(UNNEST($days) AS DATE))
    AND NOT COALESCE(warmup, false)
    AND NOT COALESCE(health, false)
GROUP BY ALL
ORDER BY ALL
"""


def read_hours(connection: duckdb.DuckDBPyConnection, days: Sequence[str]) -> pa.Table:
    """Return the requests of some days by tenant and hour: `tenant`, `day`, `hour`, `requests`."""
    return connection.sql(_COUNTS, params={"days": list(days)}).to_arrow_table()


def profiles(counts: pa.Table, weights: Mapping[str, int], zone: tzinfo) -> pa.Table:
    """Return each tenant's share of a day's requests by hour of the day.

    Args:
        counts: What `read_hours` returns.
        weights: What a request of each day counts.
        zone: Zone of the hours.

    Returns:
        Rows of the `hours` table: 24 a tenant, whose shares add up to one.
    """
    tenants = sorted(set(counts["tenant"].to_pylist()))
    place = {tenant: n for n, tenant in enumerate(tenants)}
    heat = np.zeros((len(tenants), HOURS), np.int64)
    seen = np.zeros(len(tenants), np.int64)
    for row in counts.to_pylist():
        one = place[row["tenant"]]
        heat[one, row["hour"].astimezone(zone).hour] += row["requests"] * weights[row["day"]]
        seen[one] += row["requests"]
    rows: list[dict[str, Any]] = []
    together = _shares(heat.sum(axis=0))
    for tenant, own, requests in zip(tenants, heat, seen, strict=True):
        mixed = _shares(own) * requests + together * PRIOR
        for hour, share in enumerate(_exact(mixed)):
            rows.append({"tenant": tenant, "hour": hour, "share_micro": share})
    schema = pa.schema([("tenant", STR), ("hour", INT), ("share_micro", INT)])
    return pa.Table.from_pylist(rows, schema=schema)


def peak(counts: pa.Table, weights: Mapping[str, int], zone: tzinfo) -> int | None:
    """Return the hour of the day with most requests of all tenants; None: there are none."""
    heat = np.zeros(HOURS, np.int64)
    for row in counts.to_pylist():
        heat[row["hour"].astimezone(zone).hour] += row["requests"] * weights[row["day"]]
    return int(heat.argmax()) if heat.any() else None


def _shares(heat: Any) -> Any:
    total = heat.sum()
    return heat / total if total else np.full(HOURS, 1 / HOURS)


def _exact(shares: Any) -> list[int]:
    """Return shares in millionths that add up to one; what rounding left goes to the largest."""
    micro = np.floor(shares / shares.sum() * MICRO).astype(np.int64)
    micro[int(micro.argmax())] += MICRO - int(micro.sum())
    return [int(one) for one in micro]
