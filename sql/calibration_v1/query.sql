-- What plans expected of their items beside what came, by layer and size of the forecast.
WITH served AS (
    SELECT plan_id, layer, item_id, target, COUNT(*) AS hits
    FROM hits
    WHERE "window" = $day AND tier IS NULL AND hit AND item_id IS NOT NULL
    GROUP BY plan_id, layer, item_id, target
),
realised AS (
    SELECT plan_id, layer, item_id, MAX(hits) AS hits
    FROM served
    GROUP BY plan_id, layer, item_id
),
scored AS (
    SELECT
        plan.plan_id,
        plan.layer,
        plan.expected_micro / 1e6 AS expected,
        COALESCE(realised.hits, 0) AS hits,
        COALESCE(realised.hits, 0)
        BETWEEN plan.expected_low AND plan.expected_high AS inside
    FROM plan
    LEFT JOIN realised USING (plan_id, layer, item_id)
    WHERE
        plan.tier IS NULL
        AND plan.layer IN ('embeddings', 'responses')
        AND plan.plan_id IN (SELECT plan_id FROM hits WHERE "window" = $day)
),
sized AS (
    SELECT
        *,
        CASE
            WHEN expected < 0.5 THEN 0.0
            WHEN expected < 1 THEN 0.5
            WHEN expected < 5 THEN 1.0
            WHEN expected < 20 THEN 5.0
            WHEN expected < 100 THEN 20.0
            ELSE 100.0
        END AS expected_from
    FROM scored
)
SELECT
    CAST($day AS DATE) AS day,
    plan_id,
    layer,
    CAST(expected_from AS DOUBLE) AS expected_from,
    COUNT(*) AS items,
    ROUND(AVG(expected), 3) AS expected_hits,
    CAST(ROUND(AVG(hits), 3) AS DOUBLE) AS realised_hits,
    CAST(ROUND(COUNT(*) FILTER (WHERE inside) / COUNT(*), 4) AS DOUBLE) AS inside_share
FROM sized
GROUP BY plan_id, layer, expected_from
ORDER BY plan_id, layer, expected_from
