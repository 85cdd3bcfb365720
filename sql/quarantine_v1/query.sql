-- Log rows that could not be used, by the day they were ingested on.
SELECT
    CAST(ingested_at AS DATE) AS day,
    source,
    dialect,
    reason,
    field,
    COUNT(*) AS rows_quarantined,
    SUM(bytes) AS bytes,
    MIN(position) AS first_position,
    MAX(position) AS last_position
FROM quarantine
WHERE CAST(ingested_at AS DATE) = CAST($day AS DATE)
GROUP BY CAST(ingested_at AS DATE), source, dialect, reason, field
ORDER BY rows_quarantined DESC, source, reason, field
