-- Hits on a day's traffic by plan, layer and tenant; a layer's tiers are not counted.
WITH day_hits AS (
    SELECT
        plan_id,
        layer,
        tenant,
        hit,
        match
    FROM hits
    WHERE "window" = $day AND tier IS NULL
)
SELECT
    CAST($day AS DATE) AS day,
    plan_id,
    layer,
    tenant,
    COUNT(*) AS requests,
    COUNT(*) FILTER (WHERE hit) AS hits,
    COUNT(*) FILTER (WHERE hit AND match = 'exact') AS exact_hits,
    COUNT(*) FILTER (WHERE hit AND match = 'semantic') AS semantic_hits,
    CAST(ROUND(COUNT(*) FILTER (WHERE hit) / COUNT(*), 4) AS DOUBLE) AS hit_ratio
FROM day_hits
GROUP BY plan_id, layer, tenant
ORDER BY plan_id, layer, tenant
