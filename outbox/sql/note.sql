-- purpose: append events that move no state
-- edges: none
-- zero rows: never
INSERT INTO {schema}.event
    (at, seq, subject, name, from_state, to_state, actor, actor_name, fence, reason, detail)
SELECT {schema}.clock_now(), i.seq, i.subject, i.name, i.state, i.state, i.actor, i.actor_name,
       i.fence, i.reason, i.detail
  FROM jsonb_to_recordset(CAST(:notes AS jsonb)) AS i(
       seq bigint, subject text, name text, state text, actor text, actor_name text,
       fence bigint, reason text, detail jsonb)
RETURNING event_id
