-- purpose: which guards outside the row kept a send mark from being written
-- edges: none
-- zero rows: no such row
SELECT s.seq, {guard:unpaused} AS unpaused, {guard:read_set_holds} AS read_set_holds
  FROM {schema}.intent_state s
  LEFT JOIN {schema}.contract c ON c.contract_id = s.contract_id
 WHERE s.seq = ANY (CAST(:seqs AS bigint[]))
