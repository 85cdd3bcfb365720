-- How the demand for each cluster's texts moved since the day before that has clusters.
WITH previous_day AS (
    SELECT MAX(day) AS day
    FROM members
    WHERE day < CAST($day AS DATE)
),
before_texts AS (
    SELECT
        members.tenant,
        members.text_digest,
        SUM(members.heat_micro) AS heat_micro
    FROM members
    INNER JOIN previous_day ON members.day = previous_day.day
    GROUP BY members.tenant, members.text_digest
),
now_texts AS (
    SELECT
        members.cluster_id,
        members.heat_micro,
        before_texts.heat_micro AS before_micro
    FROM members
    LEFT JOIN before_texts
        ON members.tenant = before_texts.tenant AND members.text_digest = before_texts.text_digest
    WHERE members.day = CAST($day AS DATE)
),
moved AS (
    SELECT
        cluster_id,
        SUM(heat_micro) AS heat_micro,
        SUM(COALESCE(before_micro, 0)) AS before_micro,
        SUM(CASE WHEN before_micro IS NULL THEN heat_micro ELSE 0 END) AS new_micro
    FROM now_texts
    GROUP BY cluster_id
)
SELECT
    clusters.day,
    clusters.tenant,
    clusters.cluster_id,
    clusters.label,
    CAST(ROUND(moved.heat_micro / 1e6, 3) AS DOUBLE) AS heat,
    CAST(ROUND(moved.before_micro / 1e6, 3) AS DOUBLE) AS heat_before,
    CAST(ROUND((moved.heat_micro - moved.before_micro) / 1e6, 3) AS DOUBLE) AS heat_change,
    CAST(ROUND(moved.new_micro / NULLIF(moved.heat_micro, 0), 4) AS DOUBLE) AS new_share,
    previous_day.day AS compared_with
FROM clusters
INNER JOIN moved ON clusters.cluster_id = moved.cluster_id
CROSS JOIN previous_day
WHERE clusters.day = CAST($day AS DATE) AND previous_day.day IS NOT NULL
ORDER BY ABS(moved.heat_micro - moved.before_micro) DESC, clusters.cluster_id
