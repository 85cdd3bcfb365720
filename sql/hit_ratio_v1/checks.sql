-- Each check counts the rows at fault in `report`, the query's result.
#fail is_unique plan_id, layer, tenant
SELECT COUNT(*) - COUNT(DISTINCT (plan_id, layer, tenant)) FROM report;
#fail in_range hit_ratio
SELECT COUNT(*) FROM report WHERE hit_ratio NOT BETWEEN 0 AND 1;
#warn min_row_count
SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE 0 END FROM report;
