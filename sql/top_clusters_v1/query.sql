-- The clusters that hold the most expected demand after a day.
WITH cluster_texts AS (
    SELECT
        cluster_id,
        COUNT(*) AS texts
    FROM members
    WHERE day = CAST($day AS DATE)
    GROUP BY cluster_id
),
tenant_heat AS (
    SELECT
        tenant,
        SUM(heat_micro) AS heat_micro
    FROM clusters
    WHERE day = CAST($day AS DATE)
    GROUP BY tenant
)
SELECT
    clusters.day,
    clusters.tenant,
    clusters.cluster_id,
    clusters.label,
    array_to_string(clusters.keywords, ', ') AS keywords,
    COALESCE(cluster_texts.texts, 0) AS texts,
    clusters.requests,
    CAST(ROUND(clusters.heat_micro / 1e6, 3) AS DOUBLE) AS heat,
    CAST(ROUND(clusters.heat_micro / NULLIF(tenant_heat.heat_micro, 0), 4) AS DOUBLE)
        AS tenant_share
FROM clusters
LEFT JOIN cluster_texts ON clusters.cluster_id = cluster_texts.cluster_id
INNER JOIN tenant_heat ON clusters.tenant = tenant_heat.tenant
WHERE clusters.day = CAST($day AS DATE)
ORDER BY clusters.heat_micro DESC, clusters.cluster_id
