"""The stage that turns the counts of the history into expected requests: prompts, heads -> heat."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.forecast.decay import day_weights
from warmup_lib.forecast.window import history
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport, silent

_HEAT = """
WITH counted AS (
    SELECT 'prompt' AS level, tenant, response_digest AS digest, requests, day FROM prompts
    UNION ALL
    SELECT 'head' AS level, tenant, head_digest AS digest, requests, day FROM heads
),
weights AS (
    SELECT CAST(day AS DATE) AS day, weight FROM per_day
)
SELECT
    level,
    tenant,
    digest,
    CAST(SUM(requests * weight) AS BIGINT) AS heat_micro,
    CAST(SUM(requests) AS BIGINT) AS seen,
    CAST(MAX(counted.day) AS VARCHAR) AS last_day,
    COUNT(*) AS counts
FROM counted
INNER JOIN weights ON counted.day = weights.day
GROUP BY level, tenant, digest
"""


def run(lake: Lake, day: str, config: Config, progress: Progress = silent) -> StageReport:
    """Replace the `heat` partition of `day`.

    Memory: DuckDB streams the counts and spills the groups; the result is one row a prompt.

    Raises:
        InputDataError: `day` was not distilled.
    """
    started = time.perf_counter()
    window = history(lake.days("prompts"), day, config.forecast.lookback)
    weights = day_weights(window.days, config.forecast.half_life)
    progress("forecast", 0, len(window.days))
    per_day = pa.table({"day": list(weights), "weight": list(weights.values())})
    connection = lake.sql()
    try:
        connection.register("per_day", per_day)
        rows = connection.sql(_HEAT).to_arrow_table()
    finally:
        connection.close()
    lake.replace("heat", {"day": day}, rows, {"config": config.digest(), "days": list(window.days)})
    progress("forecast", len(window.days), len(window.days))
    return StageReport(
        "forecast",
        rows_in=_total(rows, "counts"),
        rows_out=rows.num_rows,
        seconds=time.perf_counter() - started,
        notes=window.note("prompts"),
        facts={
            "days": list(window.days),
            "missing_days": list(window.missing),
            "prompts": _level(rows, "prompt"),
            "heads": _level(rows, "head"),
        },
    )


def _level(rows: pa.Table, level: str) -> dict[str, int]:
    kept = rows.filter(pc.equal(rows["level"], level))
    return {"count": kept.num_rows, "heat_micro": _total(kept, "heat_micro")}


def _total(rows: pa.Table, column: str) -> int:
    return int(pc.sum(rows[column], min_count=0).as_py())
