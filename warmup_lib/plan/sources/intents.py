"""Source `intents`: example prompts of the intents that are asked for the most.

An intent is one tenant's. Its examples are its hottest first turns that may be warmed, near
duplicates counted once: what its users ask, in their words.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.plan.points import ints
from warmup_lib.plan.sources.base import Material, Proposal, Source

_EXAMPLES = """
WITH named AS (
    SELECT * FROM prompts WHERE intent IS NOT NULL AND requests > 0
),
top AS (
    SELECT tenant, intent FROM named
    GROUP BY tenant, intent
    HAVING SUM(heat_micro) > 0
    ORDER BY SUM(heat_micro) DESC, tenant, intent
    LIMIT $intents
),
distinct_ones AS (
    SELECT tenant, intent, row, heat_micro, response_digest
    FROM named SEMI JOIN top USING (tenant, intent)
    WHERE unwarmable IS NULL AND NOT history AND text_digest IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY tenant, intent, COALESCE(near_of, text_digest)
        ORDER BY heat_micro DESC, response_digest
    ) = 1
)
SELECT row FROM distinct_ones
QUALIFY row_number() OVER (
    PARTITION BY tenant, intent ORDER BY heat_micro DESC, response_digest
) <= $examples
"""
_READ = (
    *("tenant", "intent", "requests", "heat_micro", "unwarmable", "history"),
    *("text_digest", "response_digest", "near_of"),
)


class Intents(Source):
    """A few prompts of each of the hottest intents."""

    name = "intents"
    layers = ("embeddings", "responses")

    def propose(self, material: Material, config: Config) -> Proposal:
        """Propose the examples."""
        settings = config.plan.sources.intents
        proposal = material.nothing()
        prompts = material.prompts.select(_READ)
        numbered = prompts.append_column("row", pa.array(np.arange(prompts.num_rows)))
        limits = {"intents": settings.limit, "examples": settings.examples}
        with duckdb.connect() as connection:
            connection.register("prompts", numbered)
            found = connection.sql(_EXAMPLES, params=limits).to_arrow_table()
        proposal.prompts[ints(found["row"])] = True
        return proposal
