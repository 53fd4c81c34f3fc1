-- purpose: say why settled rows were not bound, and put the stale ones on record
-- edges: none
-- zero rows: no such rows
-- waiting: an undo or a divergence is open; whoever ends it writes a new settled batch
WITH rest AS (
    SELECT s.seq, s.state, s.fence,
           CASE WHEN NOT s.live THEN 'stale'
                WHEN s.bound_at IS NOT NULL THEN 'duplicate'
                ELSE 'waiting' END AS answer
      FROM {schema}.intent_state s
     WHERE s.seq = ANY (CAST(:seqs AS bigint[]))
), stale AS (
    INSERT INTO {schema}.event (at, seq, name, from_state, to_state, actor, fence)
    SELECT {schema}.clock_now(), rest.seq, 'stale', rest.state, rest.state, 'outbox', rest.fence
      FROM rest
     WHERE rest.answer = 'stale'
       AND NOT EXISTS (SELECT 1 FROM {schema}.event before
                        WHERE before.seq = rest.seq AND before.name = 'stale'
                          AND before.to_state = rest.state)
)
SELECT seq, answer FROM rest
