-- purpose: the row's after_bound callback raised: let go of it until its batch is due again
-- edges: none
-- zero rows: it was handed over meanwhile
UPDATE {schema}.intent_state s
   SET hand_by = NULL
 WHERE s.seq = :seq AND s.handed_at IS NULL
RETURNING s.seq
