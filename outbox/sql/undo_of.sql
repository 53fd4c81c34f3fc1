-- purpose: the compensation that is set on a target, read after the target is locked
-- edges: none
-- zero rows: none is set
SELECT u.seq, us.state, u.intent_id, u.generation
  FROM {schema}.intent_state s
  JOIN {schema}.intent u ON u.seq = s.undo
  JOIN {schema}.intent_state us ON us.seq = u.seq
 WHERE s.seq = :seq
