-- purpose: end the wait of rows bound long ago that no function of the plan waits for
-- edges: none
-- zero rows: none was bound long enough ago, or they are handed over
-- During a rollout the other consumers' plan may have the function: so not at once.
UPDATE {schema}.intent_state s
   SET handed_at = {schema}.clock_now()
 WHERE s.seq = ANY (CAST(:seqs AS bigint[])) AND s.handed_at IS NULL
   AND s.bound_at <= {schema}.clock_now() - make_interval(secs => :kept_seconds)
RETURNING s.seq
