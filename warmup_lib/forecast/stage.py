"""The stage that turns the counts of the history into expected requests: prompts, heads -> heat."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warmup_lib.config import Config
from warmup_lib.forecast.estimators import DEFAULT, Estimator, family
from warmup_lib.forecast.history import LEVELS, read_counts, read_pressure
from warmup_lib.forecast.hours import Hours, read_hours
from warmup_lib.forecast.rolling import Counts, Won, choose, forecasts, never_again, volume
from warmup_lib.forecast.spread import Curve, Spread, fit
from warmup_lib.forecast.window import history
from warmup_lib.lake import Lake
from warmup_lib.stage import Progress, StageReport, silent
from warmup_lib.tables import INT

if TYPE_CHECKING:
    import duckdb

_ENOUGH_DAYS = 7
"""Days of history below which it is hardly known how much of what is asked is asked only once."""

_HEAT = """
WITH counted AS (
    SELECT 'prompt' AS level, tenant, response_digest AS digest, requests, day FROM prompts
    UNION ALL
    SELECT 'head' AS level, tenant, head_digest AS digest, requests, day FROM heads
),
weights AS (
    SELECT level, tenant, CAST(day AS DATE) AS day, weight FROM per_day
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
INNER JOIN weights USING (level, tenant, day)
GROUP BY level, tenant, digest
"""


@dataclass(frozen=True)
class _Fitted:
    """How one level is forecast.

    Attributes:
        won: The estimator of each tenant.
        volume: What the day served brings, in terms of all decayed counts.
        curve: What a decayed count is worth.
        spread: How what comes scatters about it.
        never: Tenants of whose items none came again: they have no heat.
    """

    won: Mapping[str, Won]
    volume: float
    curve: Curve
    spread: Spread
    never: Sequence[str]


def run(lake: Lake, day: str, config: Config, progress: Progress = silent) -> StageReport:
    """Replace the `heat` and `hours` partitions of `day`.

    Without `forecast.half_life` past days say how each tenant's days are weighed; see `rolling`.

    Memory: DuckDB streams the counts and spills the groups; the result is one row a prompt, and
    the estimators are tried on a sample of them.

    Raises:
        InputDataError: `day` was not distilled.
    """
    started = time.perf_counter()
    window = history(lake.days("prompts"), day, config.forecast.lookback)
    connection = lake.sql()
    try:
        pressure = _pressure(connection, config, window.days)
        fitted: dict[str, _Fitted] = {}
        for done, level in enumerate(LEVELS):
            progress("forecast", done, len(LEVELS) + 1)
            like = fitted.get("prompt") if level == "text" else None
            fitted[level] = _fitted(connection, config, level, window.days, pressure, like)
        heated = {level: one for level, one in fitted.items() if level != "text"}
        connection.register("per_day", _weights(heated, window.days, pressure))
        rows = _served(connection.sql(_HEAT).to_arrow_table(), heated)
        together = Estimator(config.forecast.half_life or DEFAULT).weights(window.days)
        hours = Hours.of(read_hours(connection, window.days), together, config.zone)
    finally:
        connection.close()
    told = {
        level: {
            "estimators": {name: _told(won) for name, won in one.won.items()},
            "volume": one.volume,
            "curve": asdict(one.curve),
            "spread": asdict(one.spread),
        }
        for level, one in fitted.items()
    }
    meta = {"config": config.digest(), "days": list(window.days), "fitted": told}
    lake.replace("hours", {"day": day}, hours.profiles(), meta)
    lake.replace("heat", {"day": day}, rows, meta)
    progress("forecast", len(LEVELS) + 1, len(LEVELS) + 1)
    return StageReport(
        "forecast",
        rows_in=_total(rows, "counts"),
        rows_out=rows.num_rows,
        seconds=time.perf_counter() - started,
        notes=(
            *window.note("prompts"),
            *_short(window.days),
            *_notes(heated),
            *_peak_note(hours.peak, config),
        ),
        facts={
            "days": list(window.days),
            "missing_days": list(window.missing),
            "prompts": _level(rows, "prompt"),
            "heads": _level(rows, "head"),
            "fitted": told,
            "peak_hour": hours.peak,
        },
    )


def _pressure(
    connection: duckdb.DuckDBPyConnection, config: Config, days: Sequence[str]
) -> Mapping[str, float]:
    aimed = config.slo.first_token
    if aimed is None:
        return {}
    return read_pressure(connection, days, aimed / timedelta(milliseconds=1))


def _fitted(
    connection: duckdb.DuckDBPyConnection,
    config: Config,
    level: str,
    days: Sequence[str],
    pressure: Mapping[str, float],
    like: _Fitted | None,
) -> _Fitted:
    """Return how a level is forecast; `like` another one: by its estimators and volume.

    A text's heat is that of its prompts added up, so that only its curve and spread are its own.
    """
    counts, share = read_counts(connection, level, days)
    if like is not None:
        return replace(like, **_shape(counts, like.won, pressure))
    fixed = config.forecast.half_life
    pressed = any(value > 1 for value in pressure.values())
    estimators = (Estimator(fixed),) if fixed is not None else family(pressed=pressed)
    room = config.layers.responses.items if level == "prompt" else config.layers.prefixes.items
    won = choose(counts, estimators, max(1, round(room * share)), pressure)
    served = volume(counts, won, pressure)
    return _Fitted(won, served, never=never_again(counts), **_shape(counts, won, pressure))


def _shape(counts: Counts, won: Mapping[str, Won], pressure: Mapping[str, float]) -> dict[str, Any]:
    curve, spread = fit(*forecasts(counts, won, pressure))
    return {"curve": curve, "spread": spread}


def _weights(
    fitted: Mapping[str, _Fitted], days: Sequence[str], pressure: Mapping[str, float]
) -> pa.Table:
    rows = [
        {"level": level, "tenant": tenant, "day": day, "weight": weight}
        for level, one in fitted.items()
        for tenant, won in one.won.items()
        for day, weight in won.estimator.weights(days, pressure.get(tenant, 1.0)).items()
    ]
    schema = pa.schema(
        [("level", pa.string()), ("tenant", pa.string()), ("day", pa.string()), ("weight", INT)]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _served(rows: pa.Table, fitted: Mapping[str, _Fitted]) -> pa.Table:
    """Turn decayed counts into those of the day served."""
    heat = np.asarray(rows["heat_micro"].to_numpy(), np.float64)
    levels, tenants = (np.asarray(rows[name].to_numpy()) for name in ("level", "tenant"))
    for level, one in fitted.items():
        ours = levels == level
        heat[ours] *= one.volume
        heat[ours & np.isin(tenants, list(one.never))] = 0
    served = pa.array(np.rint(heat).astype(np.int64))
    return rows.set_column(rows.column_names.index("heat_micro"), "heat_micro", served)


def _told(won: Won) -> dict[str, Any]:
    return {"name": won.estimator.name, "share": won.share, "gain": won.gain}


def _notes(fitted: Mapping[str, _Fitted]) -> tuple[str, ...]:
    """Say where nothing comes again, and where which estimator won by how much."""
    never = tuple(
        f"{level}s of {tenant}: of all that was asked for before, nothing was asked for again on "
        "any of the last days: do not warm them"
        for level, one in fitted.items()
        for tenant in one.never
    )
    return never + tuple(
        f"{level}s of {tenant}: {won.estimator.name} would have caught {won.share:.1%} of past "
        f"days' requests, {100 * won.gain:.1f} points more than {Estimator(DEFAULT).name}"
        for level, one in fitted.items()
        for tenant, won in one.won.items()
        if won.gain > 0
    )


def _short(days: Sequence[str]) -> tuple[str, ...]:
    if len(days) >= _ENOUGH_DAYS:
        return ()
    return (
        f"the history is {len(days)} day{'s' * (len(days) > 1)}: below {_ENOUGH_DAYS} expect fewer "
        "hits than are promised, for it is hardly known yet how much of what is asked is asked "
        "only once",
    )


def _peak_note(hour: int | None, config: Config) -> tuple[str, ...]:
    planned = config.schedule.peak_hour
    if hour is None or hour == planned:
        return ()
    return (f"most requests come from {hour}:00 on; schedule.peak_hour says {planned}:00",)


def _level(rows: pa.Table, level: str) -> dict[str, int]:
    kept = rows.filter(pc.equal(rows["level"], level))
    return {"count": kept.num_rows, "heat_micro": _total(kept, "heat_micro")}


def _total(rows: pa.Table, column: str) -> int:
    return int(pc.sum(rows[column], min_count=0).as_py())
