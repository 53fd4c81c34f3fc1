-- purpose: keep observations that move nothing (late answers, repeated records)
-- edges: none
-- zero rows: each of them is on record already
INSERT INTO {schema}.observation
    (seq, fence, kind, number, outcome, ref, document, actor, created_at)
SELECT i.seq, i.fence, i.kind, i.number, i.outcome, i.ref, i.document, i.actor,
       {schema}.clock_now()
  FROM jsonb_to_recordset(CAST(:observations AS jsonb)) AS i(
       seq bigint, fence bigint, kind text, number integer, outcome text, ref text,
       document jsonb, actor text)
ON CONFLICT (seq, fence, kind, number) DO NOTHING
RETURNING observation_id, seq
