-- Each check counts the rows at fault in `report`, the query's result.
#fail is_unique cluster_id
SELECT COUNT(*) - COUNT(DISTINCT cluster_id) FROM report;
#fail in_range new_share
SELECT COUNT(*) FROM report WHERE new_share NOT BETWEEN 0 AND 1;
#warn min_row_count: the first day has nothing to compare with
SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE 0 END FROM report;
