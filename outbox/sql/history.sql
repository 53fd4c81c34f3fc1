-- purpose: what happened to some rows, in order: events and observations, without arguments
--          and results
-- edges: none
-- zero rows: none of them exists
SELECT found.* FROM (
    SELECT e.at, 'event' AS kind, e.event_id AS number, e.seq, e.name, e.from_state, e.to_state,
           e.actor, e.actor_name, e.fence, e.reason, NULL AS ref
      FROM {schema}.event e
     WHERE e.seq = ANY (CAST(:seqs AS bigint[]))
    UNION ALL
    SELECT o.created_at, o.kind, o.observation_id, o.seq, o.outcome, NULL, NULL, o.actor, NULL,
           o.fence, coalesce(nullif(o.document ->> 'reason', ''), o.document ->> 'code'), o.ref
      FROM {schema}.observation o
     WHERE o.seq = ANY (CAST(:seqs AS bigint[]))) found
 ORDER BY found.at, (found.kind = 'event'), found.number
 LIMIT :row_limit
