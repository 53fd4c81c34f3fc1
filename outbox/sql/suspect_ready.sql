-- purpose: does a lane hold a ready row that killed its worker before
-- edges: none
-- zero rows: no
SELECT s.seq FROM {schema}.intent_state s
 WHERE s.lane = :lane AND s.ready_at IS NOT NULL AND s.ready_at <= {schema}.clock_now()
   AND s.suspect
 LIMIT 1
