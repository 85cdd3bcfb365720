-- Each check counts the rows at fault in `report`, the query's result.
#fail is_unique plan_id, layer, expected_from
SELECT COUNT(*) - COUNT(DISTINCT (plan_id, layer, expected_from)) FROM report;
#warn in_range inside_share
SELECT COUNT(*) FROM report WHERE expected_from >= 5 AND items >= 20 AND inside_share NOT BETWEEN 0.7 AND 0.95;
#warn min_row_count
SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE 0 END FROM report;
