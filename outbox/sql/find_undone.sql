-- purpose: targets whose compensation has ended
-- edges: none; finishing an undo decides under the locks of the step
-- zero rows: no open compensation has ended
SELECT s.seq
  FROM {schema}.intent_state s
  JOIN {schema}.intent_state u ON u.seq = s.undo
 WHERE s.undo IS NOT NULL
   AND u.state IN ('committed', 'failed', 'cancelled', 'compensated')
 ORDER BY s.seq
 LIMIT :row_limit
