-- Why look-ups of a day's traffic missed, by plan, layer and cause.
WITH day_causes AS (
    SELECT
        plan_id,
        layer,
        tier,
        tenant,
        cause,
        source
    FROM causes
    WHERE "window" = $day
),
counted AS (
    SELECT
        plan_id,
        layer,
        tier,
        cause,
        COUNT(*) AS misses,
        COUNT(DISTINCT tenant) AS tenants,
        COUNT(*) FILTER (WHERE source = 'gateway') AS seen_at_the_time
    FROM day_causes
    GROUP BY plan_id, layer, tier, cause
)
SELECT
    CAST($day AS DATE) AS day,
    plan_id,
    layer,
    tier,
    cause,
    misses,
    CAST(
        ROUND(misses / SUM(misses) OVER (PARTITION BY plan_id, layer, tier), 4) AS DOUBLE
    ) AS share,
    tenants,
    seen_at_the_time
FROM counted
ORDER BY plan_id, layer, tier NULLS FIRST, misses DESC, cause
