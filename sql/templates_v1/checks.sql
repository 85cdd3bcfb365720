-- Each check counts the rows at fault in `report`, the query's result.
#fail is_unique level, tenant, template_digest
SELECT COUNT(*) - COUNT(DISTINCT (level, tenant, template_digest)) FROM report;
#fail in_range tenant_share
SELECT COUNT(*) FROM report WHERE tenant_share NOT BETWEEN 0 AND 1;
#warn min_row_count
SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE 0 END FROM report;
