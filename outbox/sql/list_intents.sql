-- purpose: intents by filters, newest first, one page; the next page begins before its last seq
-- edges: none
-- zero rows: nothing matches
SELECT n.seq, n.namespace, n.intent_id, n.generation, n.run_id, n.step, n.tool, n.lane, s.state,
       s.sends, s.live, s.parked_at IS NOT NULL AS parked, s.diverged_at IS NOT NULL AS diverged,
       EXTRACT(epoch FROM {schema}.clock_now() - n.created_at) AS age_seconds
  FROM {schema}.intent n
  JOIN {schema}.intent_state s ON s.seq = n.seq
 WHERE (CAST(:before_seq AS bigint) IS NULL OR n.seq < :before_seq)
   AND (CAST(:namespace AS text) IS NULL OR n.namespace = :namespace)
   AND (CAST(:state AS text) IS NULL OR s.state = :state)
   AND (CAST(:tool AS text) IS NULL OR n.tool = :tool)
   AND (CAST(:lane AS text) IS NULL OR n.lane = :lane)
   AND (CAST(:run_id AS text) IS NULL OR n.run_id = :run_id)
   AND (CAST(:step AS text) IS NULL OR n.step = :step)
   AND (CAST(:prefix AS text) IS NULL OR starts_with(n.intent_id, :prefix))
   AND (NOT CAST(:only_parked AS boolean) OR s.parked_at IS NOT NULL)
 ORDER BY n.seq DESC
 LIMIT :row_limit
