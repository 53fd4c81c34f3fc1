-- purpose: which of these settled rows had a send that a person cleared at their own risk
-- edges: none
-- zero rows: none of them
SELECT s.seq FROM {schema}.intent_state s
 WHERE s.seq = ANY (CAST(:seqs AS bigint[])) AND s.in_doubt AND s.diverged_at IS NULL
 ORDER BY s.seq
