"""Who asks for what: the demand of each user segment, by text, out of the requests themselves.

The `prompts` table keeps only the most frequent segment of each identity, so that a question
that everybody asks would count for the largest segment alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from warmup_lib.config import Config, key_secret
from warmup_lib.keys import Keys
from warmup_lib.tables import INT, STR

if TYPE_CHECKING:
    import duckdb

SCHEMA = pa.schema(
    [
        ("tenant", STR),
        ("user_segment", STR),
        ("segment_digest", STR),
        ("text_digest", STR),
        ("heat_micro", INT),
    ]
)

_DEMANDED = [
    *("tenant", "response_digest", "text_digest", "requests", "bypassed", "unwarmable"),
    "heat_micro",
]
# A prompt's heat is shared out by who asked for it. What was redacted, or may not be stored, does
# not go into what a segment is known by.
_SEGMENTS = """
WITH asked AS (
    SELECT tenant, user_segment, response_digest, COUNT(*) AS times
    FROM requests
    WHERE day BETWEEN CAST($first AS DATE) AND CAST($day AS DATE)
        AND trim(COALESCE(user_segment, '')) <> ''
        AND NOT COALESCE(warmup, false)
        AND NOT COALESCE(health, false)
        AND NOT COALESCE(bypass, false)
        AND NOT COALESCE(redacted, false)
        AND NOT COALESCE(cache_control ILIKE '%no-store%', false)
    GROUP BY tenant, user_segment, response_digest
)
SELECT
    tenant,
    user_segment,
    text_digest,
    CAST(SUM(
        CAST(heat_micro AS HUGEINT) * times // GREATEST(requests - bypassed, times)
    ) AS BIGINT) AS heat_micro
FROM asked
INNER JOIN demanded USING (tenant, response_digest)
WHERE unwarmable IS NULL AND text_digest IS NOT NULL
GROUP BY tenant, user_segment, text_digest
ORDER BY tenant, user_segment, text_digest
"""


def read_segments(
    connection: duckdb.DuckDBPyConnection, prompts: pa.Table, first: str, day: str, config: Config
) -> pa.Table:
    """Return one row a tenant, segment and text: see `Demand.segments`.

    Args:
        connection: The lake's views.
        prompts: The demand; what is not in it counts for no segment.
        first: First day of the history, ISO date.
        day: Last one.
        config: The settings, for the key secret.
    """
    connection.register("demanded", prompts.select(_DEMANDED))
    bounds: dict[str, Any] = {"first": first, "day": day}
    rows = connection.sql(_SEGMENTS, params=bounds).to_arrow_table()
    connection.unregister("demanded")
    names = rows["user_segment"].combine_chunks().dictionary_encode()
    if not len(names):
        return SCHEMA.empty_table()
    keys = Keys(key_secret(config))
    digests = pa.array([keys.segment_digest(name) for name in names.dictionary.to_pylist()])
    column = digests.take(names.indices)
    return rows.append_column("segment_digest", column).select(SCHEMA.names).cast(SCHEMA)
