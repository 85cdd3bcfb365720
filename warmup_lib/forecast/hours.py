"""When in the day requests come: each tenant's share by hour, and the peak.

Heat is a day's. What a candidate is expected to be asked for in one hour is its heat times the
share of that hour for its tenant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warmup_lib.tables import INT, MICRO, STR

if TYPE_CHECKING:
    import duckdb

Ints = np.ndarray[Any, np.dtype[np.int64]]

HOURS = 24
PRIOR = 200
"""Requests of all tenants that a tenant's own hours are mixed with: few of its own tell little."""

_SCHEMA = pa.schema([("tenant", STR), ("hour", INT), ("share_micro", INT)])

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


@dataclass(frozen=True)
class Hours:
    """When requests came, by the hour of the day.

    Attributes:
        tenants: Names.
        heat: (tenants, 24) requests, each weighed by its day.
        requests: (tenants,) requests.
    """

    tenants: Sequence[str]
    heat: Ints
    requests: Ints

    @staticmethod
    def of(counts: pa.Table, weights: Mapping[str, int], zone: tzinfo) -> Hours:
        """Add up what `read_hours` returns.

        Args:
            counts: Rows of `tenant`, `day`, `hour`, `requests`.
            weights: What a request of each day counts.
            zone: Zone of the hours.
        """
        tenants = sorted(set(counts["tenant"].to_pylist()))
        place = {tenant: n for n, tenant in enumerate(tenants)}
        found = Hours(
            tenants, np.zeros((len(tenants), HOURS), np.int64), np.zeros(len(tenants), np.int64)
        )
        for row in counts.to_pylist():
            one = place[row["tenant"]]
            hour = row["hour"].astimezone(zone).hour
            found.heat[one, hour] += row["requests"] * weights[row["day"]]
            found.requests[one] += row["requests"]
        return found

    @property
    def peak(self) -> int | None:
        """The hour with most requests of all tenants; None: there are none."""
        together = self.heat.sum(axis=0)
        return int(together.argmax()) if together.any() else None

    def profiles(self) -> pa.Table:
        """Return rows of the `hours` table: 24 a tenant, whose shares add up to one."""
        rows: list[dict[str, Any]] = []
        together = _shares(self.heat.sum(axis=0))
        for tenant, own, requests in zip(self.tenants, self.heat, self.requests, strict=True):
            mixed = _shares(own) * requests + together * PRIOR
            for hour, share in enumerate(_exact(mixed)):
                rows.append({"tenant": tenant, "hour": hour, "share_micro": share})
        return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _shares(heat: Any) -> Any:
    total = heat.sum()
    return heat / total if total else np.full(HOURS, 1 / HOURS)


def _exact(shares: Any) -> list[int]:
    """Return shares in millionths that add up to one; what rounding left goes to the largest."""
    micro = np.floor(shares / shares.sum() * MICRO).astype(np.int64)
    micro[int(micro.argmax())] += MICRO - int(micro.sum())
    return [int(one) for one in micro]
