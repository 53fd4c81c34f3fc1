-- purpose: lanes with rows that may be claimed now, and the age of each lane's oldest
-- edges: none
-- zero rows: nothing to do
SELECT lane, count(*) AS ready, extract(epoch FROM {schema}.clock_now() - min(ready_at)) AS oldest
  FROM (SELECT s.lane, s.ready_at FROM {schema}.intent_state s
         WHERE s.ready_at IS NOT NULL AND s.ready_at <= {schema}.clock_now()
         LIMIT :row_limit) ready
 GROUP BY lane
 ORDER BY lane
