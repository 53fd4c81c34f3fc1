-- purpose: which of these targets the outbox has already ordered a compensation for by itself
-- edges: none
-- zero rows: none of them
SELECT DISTINCT n.compensates AS seq
  FROM {schema}.intent n
  JOIN {schema}.event e ON e.seq = n.seq AND e.name = 'put' AND e.actor = 'outbox'
 WHERE n.compensates = ANY (CAST(:seqs AS bigint[]))
