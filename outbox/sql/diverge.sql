-- purpose: mark an open divergence on a row, on its step's live row and, for a compensation, on
--          its target and the target's live row; the step's rows are locked by the caller
-- edges: none here; hold_pass takes hold for a live row found queued or executing
-- zero rows: no such row
UPDATE {schema}.intent_state s
   SET diverged_at = coalesce(s.diverged_at, {schema}.clock_now())
  FROM {schema}.intent own
  LEFT JOIN {schema}.intent target ON target.seq = own.compensates,
       {schema}.intent other
 WHERE own.seq = :seq
   AND s.seq = other.seq
   AND ((other.namespace = own.namespace AND other.intent_id = own.intent_id)
        OR (other.namespace = target.namespace AND other.intent_id = target.intent_id))
   AND (s.live OR s.seq = own.seq OR s.seq = own.compensates)
RETURNING s.seq, s.state, s.live, s.contract_id, s.diverged_at
