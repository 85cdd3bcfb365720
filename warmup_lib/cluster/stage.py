"""The stage that groups each tenant's texts for people to read: prompts -> clusters, members."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.cluster.tenant import Texts, clusters
from warmup_lib.config import Config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.embed.vectors import LakeVectors
from warmup_lib.errors import InputDataError
from warmup_lib.forecast.window import history
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.tables import CLUSTERS, MEMBERS

_TEXTS = """
WITH identities AS (
    SELECT
        tenant,
        response_digest,
        MIN(text_digest) AS text_digest,
        ARG_MAX(text, day) AS text,
        BOOL_OR(unwarmable IS NOT DISTINCT FROM 'redacted') AS redacted
    FROM prompts
    WHERE list_contains($days, CAST(day AS VARCHAR))
    GROUP BY tenant, response_digest
)
SELECT
    identities.tenant,
    text_digest,
    ARG_MAX(text, (heat_micro, digest)) AS text,
    NOT BOOL_OR(redacted) AS clean,
    CAST(SUM(heat_micro) AS BIGINT) AS heat_micro,
    CAST(SUM(seen) AS BIGINT) AS requests
FROM identities
INNER JOIN heat ON heat.tenant = identities.tenant AND heat.digest = identities.response_digest
WHERE heat.day = CAST($day AS DATE) AND heat.level = 'prompt'
GROUP BY identities.tenant, text_digest
ORDER BY identities.tenant, text_digest
"""


def run(lake: Lake, day: str, config: Config, progress: Progress = silent) -> StageReport:
    """Replace the `clusters` and `members` partitions of `day`.

    They hold the distinct texts of the history that `forecast` read, weighted by their heat.
    Texts without a vector (empty, or too long for the encoder) are in no cluster.

    Memory: the texts of the history, and one tenant's vectors at a time.

    Raises:
        InputDataError: `day` was not distilled, forecast, or embedded under this encoder.
    """
    started = time.perf_counter()
    window = history(lake.days("prompts"), day, config.forecast.lookback)
    if lake.manifest("heat", {"day": day}) is None:
        raise InputDataError(f"no heat for {day}: run `forecast` for it first")
    encoder = open_encoder(config).fingerprint
    vectors = LakeVectors(lake, encoder)
    texts = _texts(lake, day, list(window.days))
    tenants = texts["tenant"].unique().to_pylist()
    groups, members, without = [], [], 0
    for done, tenant in enumerate(tenants):
        progress("cluster", done, len(tenants))
        rows = texts.filter(pc.equal(texts["tenant"], tenant))
        known = _with_vectors(tenant, rows, vectors)
        without += rows.num_rows - len(known.digests)
        for cluster in clusters(known, config.cluster) if known.digests else ():
            groups.append({**cluster.row, "encoder": encoder})
            members += cluster.members
    progress("cluster", len(tenants), len(tenants))
    if texts.num_rows and not members:
        raise InputDataError(f"no text of {day}'s history has a vector: run `embed` for its days")
    meta = {"config": config.digest(), "encoder": encoder}
    for table, rows in ((CLUSTERS, groups), (MEMBERS, members)):
        lake.replace(table.name, {"day": day}, pa.Table.from_pylist(rows, table.schema), meta)
    return StageReport(
        "cluster",
        rows_in=texts.num_rows,
        rows_out=len(groups),
        seconds=time.perf_counter() - started,
        notes=_notes(lake, window.days, encoder, without),
        facts={
            "clusters": len(groups),
            "members": len(members),
            "tenants": len(tenants),
            "without_vector": without,
            "encoder": encoder,
        },
    )


def _notes(lake: Lake, days: Sequence[str], encoder: str, without: int) -> tuple[str, ...]:
    embedded = {p["day"] for p in lake.partitions("vectors") if p["encoder"] == encoder}
    notes = [f"texts without a vector, in no cluster: {without}"] if without else []
    if behind := [day for day in days if day not in embedded]:
        notes.append(f"not embedded under this encoder: {', '.join(behind)}; run `embed` for them")
    return tuple(notes)


def _texts(lake: Lake, day: str, days: list[str]) -> pa.Table:
    connection = lake.sql()
    try:
        return connection.sql(_TEXTS, params={"day": day, "days": days}).to_arrow_table()
    finally:
        connection.close()


def _with_vectors(tenant: str, rows: pa.Table, vectors: LakeVectors) -> Texts:
    digests = rows["text_digest"].to_pylist()
    matrix = vectors.matrix(digests)
    has = matrix.any(axis=1)
    kept = rows.filter(pa.array(has))
    return Texts(
        tenant=tenant,
        digests=kept["text_digest"].to_pylist(),
        texts=[text or "" for text in kept["text"].to_pylist()],
        clean=np.asarray(kept["clean"], dtype=np.bool_),
        heat_micro=np.asarray(kept["heat_micro"], dtype=np.int64),
        requests=np.asarray(kept["requests"], dtype=np.int64),
        vectors=matrix[has],
    )
