"""What was measured of waiting and of warming: in the log, by verifications and by applies.

Of plans, only those of earlier days count, so that a plan that is made again finds what it found
before. Sums are whole numbers, so that no number of threads can change a figure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warmup_lib.forecast.history import ANSWERED
from warmup_lib.lake import Lake
from warmup_lib.layers.heads import NOT_SERVED
from warmup_lib.layers.spent import recorded
from warmup_lib.plan.current import plan_meta

if TYPE_CHECKING:
    import duckdb

Place = tuple[str, str, str | None]
"""Tenant, model and adapter."""

ENOUGH = 20
"""Requests from which a figure is used, and that of a place counts as much as that of all."""

_ANSWERED = f"""
FROM requests
WHERE day BETWEEN CAST($first AS DATE) AND CAST($day AS DATE) AND {ANSWERED}
"""
_ANSWERS = f"""
SELECT tenant, model, adapter, COUNT(latency_ms) AS requests,
    CAST(COALESCE(SUM(CAST(latency_ms * 1000 AS BIGINT)), 0) AS BIGINT) AS micros,
    quantile_disc(latency_ms, 0.95) AS answer_p95,
    quantile_disc(ttft_ms, 0.95) AS first_token_p95
{_ANSWERED}
GROUP BY tenant, model, adapter
ORDER BY tenant, model, adapter NULLS FIRST
"""
# A straight line through first-token times over the tokens that the host had to compute.
_PREFILL = f"""
SELECT COUNT(*) AS n, SUM(x) AS x, SUM(y) AS y, SUM(x * x) AS xx, SUM(x * y) AS xy
FROM (
    SELECT CAST(prompt_tokens - COALESCE(cached_tokens, 0) AS HUGEINT) AS x,
        CAST(ttft_ms * 1000 AS HUGEINT) AS y
    {_ANSWERED} AND ttft_ms IS NOT NULL AND prompt_tokens IS NOT NULL
)
"""
_ON_HOSTS = """
SELECT COUNT(*) AS n, SUM(CAST(cached_tokens AS HUGEINT)) AS tokens,
    SUM(CAST((cold_ttft_ms - warm_ttft_ms) * 1000 AS HUGEINT)) AS micros
FROM hits
WHERE list_contains($plans, plan_id) AND layer = 'prefixes' AND hit
    AND cold_ttft_ms IS NOT NULL AND warm_ttft_ms IS NOT NULL AND cached_tokens > 0
"""

_UNSERVED = """
SELECT DISTINCT receipts.target, plan.model
FROM receipts
INNER JOIN plan USING (plan_id, item_id)
WHERE list_contains($plans, plan_id) AND receipts.layer = 'prefixes'
    AND receipts.status = 'skipped' AND receipts.error = $why
"""
_TAILS = ("answer_p95", "first_token_p95")


@dataclass(frozen=True)
class Waiting:
    """How long requests of one place waited where no cache served them.

    Attributes:
        answer_ms: Mean time to the end of the answer.
        answer_p95: Time within which 95 of 100 answers ended; None: not logged.
        first_token_p95: The same of first tokens.
    """

    answer_ms: float
    answer_p95: float | None = None
    first_token_p95: float | None = None


@dataclass(frozen=True)
class Spent:
    """What warming one layer took on its slowest target: an item, and a token of it."""

    item_s: float
    token_s: float
    item_bytes: float
    token_bytes: float


@dataclass(frozen=True)
class Measured:
    """The figures that there are.

    Attributes:
        places: Waiting by place, drawn towards the mean of all where requests are few.
        answer_ms: Mean time to the end of an answer over all places; None: not logged.
        token_ms: First-token time that a token in the cache saves; None: not known.
        token_from: Where that is from: `hosts` or `log`.
        spent: By layer, what warming it took.
        unserved: Model hosts and models, where one was asked to warm the other and has it not.
    """

    places: Mapping[Place, Waiting] = field(default_factory=dict)
    answer_ms: float | None = None
    token_ms: float | None = None
    token_from: str | None = None
    spent: Mapping[str, Spent] = field(default_factory=dict)
    unserved: frozenset[tuple[str, str]] = frozenset()

    def digest(self) -> str:
        """Return 16 hex digits that change with any figure."""
        of_places = sorted(self.places.items(), key=repr)
        of_hosts = sorted(self.spent.items()), sorted(self.unserved)
        told = repr((of_places, self.answer_ms, self.token_ms, of_hosts))
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def measure(lake: Lake, first: str, day: str) -> Measured:
    """Return what is known after a day.

    Args:
        lake: The lake.
        first: First day of the history, ISO date.
        day: Last one.
    """
    connection = lake.sql()
    try:
        return _measure(lake, connection, first, day)
    finally:
        connection.close()


def _measure(lake: Lake, connection: duckdb.DuckDBPyConnection, first: str, day: str) -> Measured:
    bounds: dict[str, Any] = {"first": first, "day": day}
    rows = connection.sql(_ANSWERS, params=bounds).to_arrow_table().to_pylist()
    requests, micros = (sum(row[name] for row in rows) for name in ("requests", "micros"))
    mean = micros / requests / 1000 if requests >= ENOUGH else None
    plans = _earlier(lake, day)
    token_ms, token_from = _token(connection, bounds, plans)
    asked = connection.sql(_UNSERVED, params={"plans": plans, "why": NOT_SERVED})
    unserved = frozenset(
        (row["target"], row["model"]) for row in asked.to_arrow_table().to_pylist()
    )
    return Measured(_places(rows, mean), mean, token_ms, token_from, _spent(lake, plans), unserved)


def _places(rows: list[dict[str, Any]], mean: float | None) -> dict[Place, Waiting]:
    if mean is None:
        return {}
    return {
        (row["tenant"], row["model"], row["adapter"]): Waiting(
            (row["micros"] / 1000 + ENOUGH * mean) / (row["requests"] + ENOUGH),
            *(row[name] if row["requests"] >= ENOUGH else None for name in _TAILS),
        )
        for row in rows
    }


def _earlier(lake: Lake, day: str) -> list[str]:
    """Return the plans of earlier days, newest first."""
    found = []
    for partition in lake.partitions("plan"):
        meta = plan_meta(lake, partition["plan_id"])
        if meta["day"] < day:
            found.append((meta["day"], meta["sequence"], partition["plan_id"]))
    return [plan_id for _, _, plan_id in sorted(found, reverse=True)]


def _token(
    connection: duckdb.DuckDBPyConnection, bounds: Mapping[str, Any], plans: list[str]
) -> tuple[float | None, str | None]:
    """Return the milliseconds that a cached token saves, and where that is from."""
    query = connection.sql(_ON_HOSTS, params={"plans": plans})
    [seen] = query.to_arrow_table().to_pylist()
    if seen["n"] >= ENOUGH and seen["micros"] > 0:
        return float(seen["micros"] / seen["tokens"] / 1000), "hosts"
    [line] = connection.sql(_PREFILL, params=dict(bounds)).to_arrow_table().to_pylist()
    if line["n"] < ENOUGH:
        return None, None
    n, x, y, xx, xy = (int(line[name]) for name in ("n", "x", "y", "xx", "xy"))
    rise, run = n * xy - x * y, n * xx - x * x
    return (rise / run / 1000, "log") if rise > 0 and run > 0 else (None, None)


def _spent(lake: Lake, plans: list[str]) -> dict[str, Spent]:
    """Return what each layer took when it was last warmed."""
    found: dict[str, Spent] = {}
    for plan_id in plans:
        for layer, of in recorded(lake, plan_id).items():
            found.setdefault(layer, _slowest(of))
    return found


def _slowest(of: Mapping[str, Mapping[str, Any]]) -> Spent:
    each = [
        Spent(
            cost["seconds"] / cost["items"],
            cost["seconds"] / max(1, cost["tokens"]),
            max(0, cost["bytes"]) / cost["items"],
            max(0, cost["bytes"]) / max(1, cost["tokens"]),
        )
        for _, cost in sorted(of.items())
    ]
    return max(each, key=lambda one: one.item_s)
