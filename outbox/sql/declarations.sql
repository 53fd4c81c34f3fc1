-- purpose: declarations by id; read after the rows, since one that was claimed while their lock was
--          waited for may name a declaration that the locking statement could not see
-- edges: none
-- zero rows: none of them exists
SELECT c.contract_id, c.declared FROM {schema}.contract c
 WHERE c.contract_id = ANY (CAST(:ids AS integer[]))
