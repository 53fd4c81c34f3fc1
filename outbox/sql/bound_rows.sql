-- purpose: what a callback is given of a bound row besides what is told of it
-- edges: none
-- zero rows: no such row
SELECT n.seq, n.namespace, n.intent_id, n.generation, n.tool, n.lane, n.run_id, n.step
  FROM {schema}.intent n WHERE n.seq = ANY (CAST(:seqs AS bigint[]))
 ORDER BY n.seq
