-- Each check counts the rows at fault in `report`, the query's result.
#fail min_row_count
SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE 0 END FROM report;
#fail is_unique cluster_id
SELECT COUNT(*) - COUNT(DISTINCT cluster_id) FROM report;
#fail not_null tenant, label
SELECT COUNT(*) FROM report WHERE tenant IS NULL OR label IS NULL;
#warn in_range tenant_share
SELECT COUNT(*) FROM report WHERE tenant_share NOT BETWEEN 0 AND 1;
