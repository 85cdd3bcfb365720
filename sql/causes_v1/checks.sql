-- Each check counts the rows at fault in `report`, the query's result.
#fail is_unique plan_id, layer, tier, cause
SELECT COUNT(*) - COUNT(DISTINCT (plan_id, layer, COALESCE(tier, ''), cause)) FROM report;
#fail in_range share
SELECT COUNT(*) FROM report WHERE share NOT BETWEEN 0 AND 1;
#warn few_unknown
SELECT COUNT(*) FROM report WHERE cause = 'unknown' AND share > 0.02;
#warn min_row_count
SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE 0 END FROM report;
