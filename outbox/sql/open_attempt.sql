-- purpose: let the reaper see an attempt that no claim has opened: a resend
-- edges: none
-- zero rows: never
INSERT INTO {schema}.claim_batch (owner, seqs, created_at)
VALUES (CAST(:owner AS uuid), CAST(:seqs AS bigint[]), {schema}.clock_now())
RETURNING batch_id
