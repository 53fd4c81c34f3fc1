-- purpose: which of these rows still wait for their hand-over
-- edges: none
-- zero rows: all of them are handed over
SELECT s.seq FROM {schema}.intent_state s
 WHERE s.seq = ANY (CAST(:seqs AS bigint[])) AND s.handed_at IS NULL
 ORDER BY s.seq
