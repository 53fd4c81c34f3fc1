-- purpose: everything that is told of some steps: all generations and what settled them
-- edges: none
-- zero rows: no such step, or its transaction is not committed
SELECT n.namespace, n.intent_id, n.tool, n.tool_version, s.*, o.outcome, o.ref, o.document, g.decision AS gate,
       {schema}.clock_now() AS now,
       CASE WHEN s.state = 'queued' THEN ({guard:tool_unserved}) ELSE false END AS unserved,
       CASE WHEN s.state = 'queued' THEN EXISTS (
           SELECT 1 FROM {schema}.paused p WHERE p.tool IN (n.tool, '*'))
       ELSE false END AS paused,
       CASE WHEN s.state = 'indeterminate' THEN (
           SELECT said.document ->> 'reason' FROM {schema}.observation said
            WHERE said.seq = s.seq AND said.kind = 'attempt'
            ORDER BY said.fence DESC, said.number DESC LIMIT 1)
       END AS last_word
  FROM jsonb_to_recordset(CAST(:names AS jsonb)) AS d(
           namespace text COLLATE "C", intent_id text COLLATE "C")
  JOIN {schema}.intent n ON n.namespace = d.namespace AND n.intent_id = d.intent_id
  JOIN {schema}.intent_state s ON s.seq = n.seq
  LEFT JOIN {schema}.observation o ON o.observation_id = s.observation_id
  LEFT JOIN {schema}.gate g ON g.seq = s.seq
 ORDER BY s.seq
