-- purpose: have hold_pass look at the held rows of a step at its next run
-- edges: none
-- zero rows: nothing of the step is held; never needed, hold_pass looks by itself later
UPDATE {schema}.intent_state s
   SET hold_at = {schema}.clock_now()
  FROM {schema}.intent own
  JOIN {schema}.intent other
    ON other.namespace = own.namespace AND other.intent_id = own.intent_id
 WHERE own.seq = :seq
   AND s.seq = other.seq
   AND s.hold_at > {schema}.clock_now()
RETURNING s.seq
