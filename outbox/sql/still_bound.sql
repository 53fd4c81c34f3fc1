-- purpose: whether the row's bind still stands in the transaction that made it, after a callback
--          ran in it; a callback that has ended it leaves another one behind
-- edges: none
-- zero rows: the callback has undone the bind, or has committed it by itself
SELECT s.seq FROM {schema}.intent_state s
 WHERE s.seq = :seq AND s.bound_at IS NOT NULL
   AND s.xmin = CAST(pg_current_xact_id() AS xid)
