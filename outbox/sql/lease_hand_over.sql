-- purpose: give one consumer the right to hand a bound row over for a while
-- edges: none
-- zero rows: it is handed over, or another consumer is at it
UPDATE {schema}.intent_state s
   SET hand_by = {schema}.clock_now() + make_interval(secs => :lease_seconds)
 WHERE s.seq = :seq AND s.bound_at IS NOT NULL AND s.handed_at IS NULL
   AND (s.hand_by IS NULL OR s.hand_by <= {schema}.clock_now())
RETURNING s.seq
