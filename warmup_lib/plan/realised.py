"""Reads from the lake what became of earlier plans on later days: who was served, who was not.

Only whole days of the lake count, only those later than the plan, and only plans of earlier days,
so that a plan that is made again finds what it found the first time. A log file that was verified
or explained without being taken in teaches nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from warmup_lib.causes import LOOKED_NOWHERE, Cause
from warmup_lib.evidence import FIELD
from warmup_lib.lake import Lake
from warmup_lib.plan.blocks import WRONG, Block, Group, Looks, judge
from warmup_lib.plan.current import plan_meta
from warmup_lib.plan.feedback import Feedback, Unhit
from warmup_lib.tables import BOOL, STR

if TYPE_CHECKING:
    import duckdb

_BLIND = (Cause.BYPASS_HEADER, Cause.BYPASS_PARAMETER, Cause.HOST_NOT_READY, Cause.UNKNOWN)
"""Causes that a gateway saw, and that do not tell whether it asked for the right key."""

_OWN = """
    CASE
        WHEN looked.layer = 'prefixes' OR looked.tier = 'L1' THEN requests.head_digest
        WHEN looked.tier IS NOT NULL THEN NULL
        WHEN looked.layer = 'responses' THEN requests.response_digest
        WHEN looked.layer = 'embeddings' THEN requests.text_digest
    END"""
_REQUESTS = """
    LEFT JOIN requests
        ON requests.day = CAST(looked."window" AS DATE)
        AND list_contains($days, CAST(requests.day AS VARCHAR))
        AND requests.tenant = looked.tenant AND requests.request_id = looked.request_id"""

# Where an item is named that is not the request's own, the request differs from what it was
# planned for in one thing; what another tenant asks for says nothing of it. That requests went
# past the caches counts where the gateway itself says so: a route that writes no evidence may look
# all the same, and could never show it.
_IN_VAIN = f"""
WITH items AS (
    SELECT DISTINCT item_id, tenant, layer, tier, key_digest FROM plan
),
placed AS (
    SELECT looked."window" AS day, looked.tenant, looked.request_id, looked.layer, looked.tier,
        looked.cause, looked.evidence, {_OWN} AS own, items.tenant AS its_tenant,
        items.layer AS its_layer, items.tier AS its_tier, items.key_digest AS its_digest
    FROM causes AS looked
    INNER JOIN taught USING (plan_id, "window")
    {_REQUESTS}
    LEFT JOIN items ON items.item_id = looked.item_id
    WHERE list_contains($plans, looked.plan_id) AND list_contains($wrong, looked.cause)
        AND (looked.cause <> 'key_encoder' OR taught.same_encoder)
        AND (looked.cause <> 'bypass_middleware' OR looked.evidence = $nowhere)
),
told AS (
    SELECT *,
        own IS NOT NULL AND its_digest IS NOT NULL
            AND (its_digest <> own OR its_tenant <> tenant) AS inferred
    FROM placed
),
named AS (
    SELECT day, inferred, cause, evidence, tenant, request_id,
        CASE WHEN inferred THEN its_layer ELSE layer END AS layer,
        CASE WHEN inferred THEN its_tier ELSE tier END AS tier,
        CASE WHEN inferred THEN its_digest ELSE own END AS digest
    FROM told
    WHERE NOT inferred OR its_tenant = tenant
),
-- Of what the explanations for several plans say of a request, one counts.
once AS (
    SELECT DISTINCT ON (day, inferred, tenant, request_id, layer, tier, digest) *
    FROM named
    ORDER BY cause, evidence
)
SELECT day, inferred, cause, evidence, tenant, layer, tier, digest, COUNT(*) AS looks
FROM once
GROUP BY ALL
ORDER BY ALL
"""

# What the replay has looked up and no cause is given for was served: by the replay's word, or by
# the gateway's, which then names the right key too. Without either it is a miss that is still to
# be explained, and shows nothing. A gateway that misses for another reason than its key has asked
# for the right one.
_AS_IT_SHOULD_BE = f"""
WITH served AS (
    SELECT hits."window", hits.tenant, hits.layer, hits.tier, hits.request_id, hits.hit AS seen
    FROM hits
    INNER JOIN taught USING (plan_id, "window")
    SEMI JOIN concerned ON hits.tenant = concerned.tenant AND hits.layer = concerned.layer
        AND hits.tier IS NOT DISTINCT FROM concerned.tier
    ANTI JOIN causes ON causes.plan_id = hits.plan_id AND causes."window" = hits."window"
        AND causes.tenant = hits.tenant AND causes.request_id = hits.request_id
        AND causes.layer = hits.layer AND causes.tier IS NOT DISTINCT FROM hits.tier
    WHERE list_contains($plans, hits.plan_id)
),
asked AS (
    SELECT causes."window", causes.tenant, causes.layer, causes.tier, causes.request_id,
        TRUE AS seen
    FROM causes
    INNER JOIN taught USING (plan_id, "window")
    SEMI JOIN concerned ON causes.tenant = concerned.tenant AND causes.layer = concerned.layer
        AND causes.tier IS NOT DISTINCT FROM concerned.tier
    WHERE list_contains($plans, causes.plan_id) AND causes.source = 'gateway'
        AND NOT list_contains($blind, causes.cause)
),
looked AS (SELECT * FROM served UNION SELECT * FROM asked),
placed AS (
    SELECT looked."window" AS day, looked.tenant, looked.request_id, looked.layer, looked.tier,
        looked.seen, {_OWN} AS digest, COALESCE(requests.extra, '') AS told
    FROM looked
    {_REQUESTS}
)
SELECT day, tenant, layer, tier, digest, COUNT(DISTINCT request_id) AS looks
FROM placed
WHERE (contains(told, $evidence) AND contains(told, digest))
    OR (
        seen
        AND (digest IS NULL OR layer = 'prefixes' OR NOT contains(told, $evidence))
    )
GROUP BY ALL
ORDER BY ALL
"""

# Prompts and heads count demand alone: warm-up, health checks and what went round are not in it.
_UNHIT = """
WITH stood AS (
    SELECT DISTINCT plan_id, item_id
    FROM residency
    WHERE list_contains($plans, plan_id) AND resident
),
ready AS (
    SELECT plan.item_id, plan.layer, plan.tier, plan.tenant, plan.key_digest,
        taught."window" AS day, MAX(plan.heat_micro) AS heat_micro
    FROM plan
    INNER JOIN taught USING (plan_id)
    SEMI JOIN stood ON stood.plan_id = plan.plan_id AND stood.item_id = plan.item_id
    WHERE list_contains($plans, plan.plan_id)
        AND (
            plan.layer IN ('responses', 'prefixes')
            OR (plan.layer = 'embeddings' AND (plan.tier IS NULL OR plan.tier = 'L1'))
        )
    GROUP BY ALL
),
demanded AS (
    SELECT tenant, response_digest, text_digest, day
    FROM prompts
    WHERE day BETWEEN CAST($first AS DATE) AND CAST($day AS DATE) AND requests > bypassed
),
headed AS (
    SELECT tenant, head_digest, MAX(day) AS day
    FROM heads
    WHERE day BETWEEN CAST($first AS DATE) AND CAST($day AS DATE) AND requests > 0
    GROUP BY tenant, head_digest
),
asked AS (
    SELECT 'responses' AS layer, NULL AS tier, tenant, response_digest AS digest, MAX(day) AS day
    FROM demanded
    GROUP BY tenant, response_digest
    UNION ALL
    SELECT 'embeddings', NULL, tenant, text_digest, MAX(day)
    FROM demanded
    GROUP BY tenant, text_digest
    UNION ALL SELECT 'embeddings', 'L1', tenant, head_digest, day FROM headed
    UNION ALL SELECT 'prefixes', NULL, tenant, head_digest, day FROM headed
),
hit AS (
    SELECT hits.item_id, MAX(CAST(hits."window" AS DATE)) AS day
    FROM hits
    INNER JOIN taught USING (plan_id, "window")
    WHERE list_contains($plans, hits.plan_id) AND hits.hit
    GROUP BY hits.item_id
)
SELECT ready.item_id, ready.heat_micro
FROM ready
LEFT JOIN asked ON asked.layer = ready.layer AND asked.tier IS NOT DISTINCT FROM ready.tier
    AND asked.tenant = ready.tenant AND asked.digest = ready.key_digest
LEFT JOIN hit ON hit.item_id = ready.item_id
WHERE CAST(ready.day AS DATE) > COALESCE(GREATEST(asked.day, hit.day), DATE '0001-01-01')
ORDER BY ready.item_id, ready.day
"""


def read_feedback(lake: Lake, first: str, day: str, encoder: str) -> Feedback:
    """Return what earlier plans teach a plan made after a day.

    Args:
        lake: The lake.
        first: First day of the history, ISO date: what is older is forgotten.
        day: Last one.
        encoder: Fingerprint of the encoder in use: who asked for another one's vectors then may
            ask for the right ones now.
    """
    explained, verified = (_taught(lake, t, first, day, encoder) for t in ("causes", "hits"))
    connection = lake.sql()
    try:
        blocks = _blocks(connection, explained)
        unhit = _unhit(connection, verified, first, day)
    finally:
        connection.close()
    return Feedback(tuple(blocks), unhit)


def _taught(lake: Lake, table: str, first: str, day: str, encoder: str) -> pa.Table:
    """Return the windows of a table that count, with the plans they were made for."""
    rows = []
    for partition in lake.partitions(table):
        manifest = lake.manifest(table, partition)
        plan = plan_meta(lake, partition["plan_id"])
        if manifest is None or not plan or not plan["day"] < day:
            continue
        if not manifest.meta.get("whole_day") or manifest.meta["in_sample"]:
            continue
        if first <= partition["window"] <= day:
            rows.append({**partition, "same_encoder": plan["encoder"] == encoder})
    names = [("plan_id", STR), ("window", STR), ("same_encoder", BOOL)]
    return pa.Table.from_pylist(rows, schema=pa.schema(names))


def _blocks(connection: duckdb.DuckDBPyConnection, taught: pa.Table) -> list[Block]:
    if not taught.num_rows:
        return []
    connection.register("taught", taught)
    wrong = sorted(cause.value for cause in WRONG)
    plans, days = (sorted(set(taught[name].to_pylist())) for name in ("plan_id", "window"))
    of = {"plans": plans, "days": days}
    vain = _rows(connection, _IN_VAIN, of | {"wrong": wrong, "nowhere": LOOKED_NOWHERE})
    if not vain:
        return []
    concerned = sorted({(row["tenant"], row["layer"], row["tier"]) for row in vain}, key=repr)
    columns = [pa.array(column, STR) for column in zip(*concerned, strict=True)]
    connection.register("concerned", pa.table(columns, ["tenant", "layer", "tier"]))
    blind = [*wrong, *(cause.value for cause in _BLIND)]
    told = {"blind": blind, "evidence": f'"{FIELD}"'}
    right = _rows(connection, _AS_IT_SHOULD_BE, of | told)
    return judge([*map(_looks, vain), *map(_looks, right)])


def _looks(row: dict[str, Any]) -> Looks:
    group = Group(row["tenant"], row["layer"], row["tier"])
    if "cause" not in row:
        return Looks(row["day"], group, row["digest"], row["looks"])
    told = Cause(row["cause"]), row["evidence"], row["inferred"]
    return Looks(row["day"], group, row["digest"], row["looks"], *told)


def _unhit(
    connection: duckdb.DuckDBPyConnection, taught: pa.Table, first: str, day: str
) -> dict[str, Unhit]:
    if not taught.num_rows:
        return {}
    connection.register("taught", taught)
    days: dict[str, list[int]] = defaultdict(list)
    plans = sorted(set(taught["plan_id"].to_pylist()))
    for row in _rows(connection, _UNHIT, {"plans": plans, "first": first, "day": day}):
        days[row["item_id"]].append(row["heat_micro"])
    return Unhit.of(days)


def _rows(
    connection: duckdb.DuckDBPyConnection, query: str, params: dict[str, Any]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = connection.sql(query, params=params).to_arrow_table().to_pylist()
    return found
