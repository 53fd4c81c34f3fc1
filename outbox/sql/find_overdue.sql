-- purpose: open attempts whose owner is dead or whose lease is over, and rows past their deadline
-- edges: none; `reap.moves_for` decides under the row's lock
-- zero rows: nothing is overdue
SELECT s.seq
  FROM {schema}.claim_batch b
 CROSS JOIN LATERAL unnest(b.seqs) q(seq)
  JOIN {schema}.intent_state s ON s.seq = q.seq
 WHERE s.state IN ('executing', 'awaiting_ack')
   AND {guard:overdue}
UNION
SELECT s.seq FROM {schema}.intent_state s
 WHERE s.withdraw_at <= {schema}.clock_now()
 ORDER BY seq
 LIMIT :batch_limit
