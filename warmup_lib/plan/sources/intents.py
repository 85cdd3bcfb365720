"""Source `intents`: example prompts of the intents that are asked for the most.

An intent is one tenant's. Its examples are those of its hottest first turns whose answers serve
the most of what else its users ask, by the rule that the serving side goes by: each is another
question, and stands for its phrasings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from warmup_lib.config import Config
from warmup_lib.layers.base import Vector
from warmup_lib.plan.neighbours import Floats, Ints
from warmup_lib.plan.points import ints, lay_out
from warmup_lib.plan.selection import most_covering
from warmup_lib.plan.sources.base import Material, Proposal, Source
from warmup_lib.stage import silent
from warmup_lib.tables import PLAN

LOOKED_AT = 256
"""Prompts of an intent that are looked at, hottest first: its examples are among them."""

_HOTTEST = """
WITH named AS (
    SELECT * FROM prompts WHERE intent IS NOT NULL AND requests > 0
),
top AS (
    SELECT tenant, intent, row_number() OVER (
        ORDER BY SUM(heat_micro) DESC, tenant, intent
    ) AS number
    FROM named
    GROUP BY tenant, intent
    HAVING SUM(heat_micro) > 0
)
SELECT number, row
FROM named INNER JOIN top USING (tenant, intent)
WHERE number <= $intents
    AND unwarmable IS NULL AND NOT history AND text_digest IS NOT NULL AND heat_micro > 0
QUALIFY row_number() OVER (
    PARTITION BY number ORDER BY heat_micro DESC, response_digest
) <= $looked_at
ORDER BY number, row
"""
_READ = (
    *("tenant", "intent", "requests", "heat_micro", "unwarmable", "history"),
    *("text_digest", "response_digest"),
)


class Intents(Source):
    """A few prompts of each of the hottest intents."""

    name = "intents"
    layers = ("embeddings", "responses")

    def propose(self, material: Material, config: Config) -> Proposal:
        """Propose the examples. Memory: the vectors of the prompts that are looked at."""
        settings = config.plan.sources.intents
        proposal = material.nothing()
        by_intent = _hottest(material.prompts, settings.limit)
        texts = material.prompts["text_digest"].take(
            pa.array(np.concatenate([np.zeros(0, np.int64), *by_intent]))
        )
        vectors = _Held(material.vectors_of(texts.unique().to_pylist()), material.dimension)
        for rows in by_intent:
            prompts = material.prompts.take(pa.array(rows))
            points = lay_out(prompts, _choosable(prompts), PLAN.empty())
            picked = most_covering(
                points, vectors, config.encoder.threshold, settings.examples, silent
            )
            proposal.prompts[rows[picked.rows]] = True
        return proposal


@dataclass(frozen=True)
class _Held:
    """Vectors that were read at once."""

    vectors: Mapping[str, Vector]
    dimension: int

    def matrix(self, digests: Sequence[str]) -> Floats:
        """Return the vectors as rows; zeros where there is none."""
        nothing = np.zeros(self.dimension, np.float32)
        rows = [self.vectors.get(digest, nothing) for digest in digests]
        return np.array(rows, np.float32).reshape(len(rows), self.dimension)


def _hottest(prompts: pa.Table, intents: int) -> list[Ints]:
    """Return for each of the hottest intents the rows that are looked at."""
    read = prompts.select(_READ)
    numbered = read.append_column("row", pa.array(np.arange(prompts.num_rows)))
    with duckdb.connect() as connection:
        connection.register("prompts", numbered)
        limits = {"intents": intents, "looked_at": LOOKED_AT}
        found = connection.sql(_HOTTEST, params=limits).to_arrow_table()
    number, rows = ints(found["number"]), ints(found["row"])
    return np.split(rows, np.flatnonzero(np.diff(number)) + 1) if len(rows) else []


def _choosable(prompts: pa.Table) -> pa.Table:
    keys = {"tenant": prompts["tenant"], "key_digest": prompts["response_digest"]}
    return pa.table(keys)
