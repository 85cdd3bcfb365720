"""The groups that a rare prompt or head can be judged by: those of one template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warmup_lib.lake import Lake

if TYPE_CHECKING:
    import pyarrow as pa

_GROUPS = """
WITH seen AS (
    SELECT 'prompt' AS level, tenant, response_digest AS digest, template_digest, day FROM prompts
    UNION ALL
    SELECT 'head' AS level, tenant, head_digest AS digest, template_digest, day FROM heads
)
SELECT level, tenant, digest, ARG_MAX(template_digest, day) AS template_digest
FROM seen
WHERE day IN (SELECT CAST(UNNEST($days) AS DATE))
GROUP BY level, tenant, digest
ORDER BY level, tenant, digest
"""


def template_groups(lake: Lake, days: Sequence[str]) -> pa.Table:
    """Return the template of every prompt and head of some days, as its latest day has it.

    A template is a tenant's own group: its digest is the same for another tenant, but what two
    tenants ask for is never added up.

    Returns:
        One row an item: `level` (`prompt` or `head`), `tenant`, `digest` (as in `heat`),
        `template_digest` (null for a prompt without text).
    """
    connection = lake.sql()
    try:
        return connection.sql(_GROUPS, params={"days": list(days)}).to_arrow_table()
    finally:
        connection.close()
