-- Each check counts the rows at fault in `report`, the query's result.
#fail not_null reason
SELECT COUNT(*) FROM report WHERE reason IS NULL;
#fail in_range rows_quarantined
SELECT COUNT(*) FROM report WHERE rows_quarantined < 1;
