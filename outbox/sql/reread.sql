-- purpose: after a lost COMMIT, which rows does this process hold, and how
-- edges: none
-- zero rows: the write did not commit, or the rows moved on: send nothing
SELECT s.seq, s.state, s.fence
  FROM {schema}.intent_state s
  JOIN jsonb_to_recordset(CAST(:held AS jsonb)) AS m(seq bigint, fence bigint) ON m.seq = s.seq
 WHERE s.owner = CAST(:owner AS uuid) AND s.fence = m.fence
