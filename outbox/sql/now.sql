-- purpose: the store's time
-- edges: none
-- zero rows: never
SELECT {schema}.clock_now() AS now
