-- purpose: what is stored under these ids: generation 0, and the live generation
-- edges: none
-- zero rows: nothing that this transaction may see
SELECT n.seq, n.namespace, n.intent_id, n.generation, n.tool, n.lane, n.run_id, n.step,
       n.fingerprint, s.live
  FROM jsonb_to_recordset(CAST(:names AS jsonb)) AS d(
           namespace text COLLATE "C", intent_id text COLLATE "C")
  JOIN {schema}.intent n ON n.namespace = d.namespace AND n.intent_id = d.intent_id
  JOIN {schema}.intent_state s ON s.seq = n.seq
 WHERE n.generation = 0 OR s.live
 ORDER BY n.seq
