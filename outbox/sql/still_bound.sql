-- purpose: whether the row's bind still stands in this transaction, after a callback ran in it
-- edges: none
-- zero rows: the callback has undone the bind
SELECT s.seq FROM {schema}.intent_state s WHERE s.seq = :seq AND s.bound_at IS NOT NULL
