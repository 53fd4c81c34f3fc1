-- purpose: the row's after_bound callback has returned
-- edges: none
-- zero rows: it was handed over before
UPDATE {schema}.intent_state s
   SET handed_at = {schema}.clock_now(), hand_by = NULL
 WHERE s.seq = :seq AND s.handed_at IS NULL
RETURNING s.seq
