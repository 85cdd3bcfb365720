-- The templates that hold the most expected demand after a day.
WITH day_heat AS (
    SELECT
        level,
        tenant,
        digest,
        heat_micro,
        seen,
        CAST(last_day AS DATE) AS last_day
    FROM heat
    WHERE day = CAST($day AS DATE)
),
items AS (
    SELECT
        day_heat.level,
        day_heat.tenant,
        day_heat.digest,
        day_heat.heat_micro,
        day_heat.seen,
        prompts.template_digest,
        prompts.text
    FROM day_heat
    INNER JOIN prompts
        ON day_heat.tenant = prompts.tenant
        AND day_heat.digest = prompts.response_digest
        AND day_heat.last_day = prompts.day
    WHERE day_heat.level = 'prompt'
    UNION ALL
    SELECT
        day_heat.level,
        day_heat.tenant,
        day_heat.digest,
        day_heat.heat_micro,
        day_heat.seen,
        heads.template_digest,
        heads.system_prompt AS text
    FROM day_heat
    INNER JOIN heads
        ON day_heat.tenant = heads.tenant
        AND day_heat.digest = heads.head_digest
        AND day_heat.last_day = heads.day
    WHERE day_heat.level = 'head'
),
tenant_heat AS (
    SELECT
        level,
        tenant,
        SUM(heat_micro) AS heat_micro
    FROM items
    GROUP BY level, tenant
),
grouped AS (
    SELECT
        level,
        tenant,
        template_digest,
        COUNT(*) AS items,
        SUM(seen) AS requests,
        SUM(heat_micro) AS heat_micro,
        ARG_MAX(text, (heat_micro, digest)) AS example
    FROM items
    WHERE template_digest IS NOT NULL
    GROUP BY level, tenant, template_digest
)
SELECT
    CAST($day AS DATE) AS day,
    grouped.level,
    grouped.tenant,
    grouped.template_digest,
    grouped.items,
    CAST(grouped.requests AS BIGINT) AS requests,
    CAST(ROUND(grouped.heat_micro / 1e6, 3) AS DOUBLE) AS heat,
    CAST(ROUND(grouped.heat_micro / NULLIF(tenant_heat.heat_micro, 0), 4) AS DOUBLE)
        AS tenant_share,
    SUBSTRING(grouped.example, 1, 200) AS example
FROM grouped
INNER JOIN tenant_heat
    ON grouped.level = tenant_heat.level AND grouped.tenant = tenant_heat.tenant
ORDER BY grouped.level DESC, grouped.heat_micro DESC, grouped.tenant, grouped.template_digest
