"""What requests retrieve from, and the clusters of prompts that retrieve: chunks and members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.errors import InputDataError
from warmup_lib.lake import Lake
from warmup_lib.tables import INT, REAL, STR

if TYPE_CHECKING:
    import duckdb

MEMBERS = pa.schema(
    [
        ("tenant", STR),
        ("cluster_id", STR),
        ("medoid", STR),
        ("text_digest", STR),
        ("similarity", REAL),
        ("heat_micro", INT),
    ]
)
_MEMBERS = """
SELECT members.tenant, cluster_id, clusters.medoid, text_digest, similarity, members.heat_micro
FROM members
INNER JOIN clusters USING (day, cluster_id)
WHERE day = CAST($day AS DATE) AND list_contains($tenants, members.tenant)
ORDER BY cluster_id, text_digest
"""


def read_chunks(lake: Lake, day: str, tenants: Sequence[str] | None = None) -> pa.Table:
    """Return the documents' chunks in force on a day, of some tenants or of all."""
    chunks = lake.read("chunks", {"day": day})
    if tenants is None:
        return chunks
    return chunks.filter(pc.is_in(chunks["tenant"], value_set=pa.array(tenants, STR)))


def read_members(
    lake: Lake, connection: duckdb.DuckDBPyConnection, day: str, chunks: pa.Table
) -> pa.Table:
    """Return the cluster members of the tenants that have chunks: see `Demand.members`.

    Raises:
        InputDataError: There are chunks and the day was not clustered.
    """
    if not chunks.num_rows:
        return MEMBERS.empty_table()
    if lake.manifest("clusters", {"day": day}) is None:
        raise InputDataError(f"no clusters for {day}: run `cluster` for it first")
    bounds: dict[str, Any] = {"day": day, "tenants": chunks["tenant"].unique().to_pylist()}
    return connection.sql(_MEMBERS, params=bounds).to_arrow_table().cast(MEMBERS)
