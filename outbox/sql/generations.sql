-- purpose: every generation of one intent, and the compensations of them
-- edges: none
-- zero rows: no such intent
WITH step AS (
    SELECT n.seq FROM {schema}.intent n
     WHERE n.namespace = :namespace AND n.intent_id = :intent_id
)
SELECT n.seq, n.namespace, n.intent_id, n.generation, n.run_id, n.step, n.tool, n.tool_version,
       n.lane, n.compensates, n.created_at, s.state, s.fence, s.attempts, s.sends, s.resends,
       s.probes, s.live, s.wanted, s.key_trusted, s.unresolved, s.in_doubt, s.undo,
       s.adopted_from, s.parked_at, s.diverged_at, s.settled_at, s.bound_at, s.handed_at,
       s.deadline, o.ref, g.decision AS gate, g.fingerprint AS gate_fingerprint,
       greatest(EXTRACT(epoch FROM s.quiet_at - {schema}.clock_now()), 0) AS quiet_in_seconds
  FROM {schema}.intent n
  JOIN {schema}.intent_state s ON s.seq = n.seq
  LEFT JOIN {schema}.observation o ON o.observation_id = s.observation_id
  LEFT JOIN {schema}.gate g ON g.seq = n.seq
 WHERE n.seq IN (SELECT seq FROM step) OR n.compensates IN (SELECT seq FROM step)
 ORDER BY n.seq
