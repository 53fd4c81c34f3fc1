-- purpose: count a probe that settled nothing
-- edges: none
-- zero rows: the row moved on
UPDATE {schema}.intent_state s
   SET probes = s.probes + 1
 WHERE s.seq = :seq AND s.state = 'indeterminate' AND s.fence = :fence
RETURNING s.probes
