-- purpose: a compensation ended without undoing: its target is where it was, and may bind again
-- edges: none
-- zero rows: another compensation is set, or it has not ended
WITH reset AS (
    UPDATE {schema}.intent_state s
       SET undo = NULL
      FROM {schema}.intent_state u
     WHERE s.seq = :seq AND s.undo = :undo AND u.seq = s.undo
       AND u.state IN ('committed', 'failed', 'cancelled', 'compensated')
    RETURNING s.seq, s.fence, s.state, s.settled_at, s.bound_at, u.state AS undo_state
), logged AS (
    INSERT INTO {schema}.event
        (at, seq, name, from_state, to_state, actor, fence, reason, detail)
    SELECT {schema}.clock_now(), seq, 'undo_ended', state, state, 'outbox', fence, undo_state,
           jsonb_build_object('undo', CAST(:undo AS bigint))
      FROM reset
), again AS (
    INSERT INTO {schema}.settled_batch (stage, seqs, due_at)
    SELECT 'settled', array_agg(seq), {schema}.clock_now()
      FROM reset WHERE settled_at IS NOT NULL AND bound_at IS NULL
    HAVING count(*) > 0
)
SELECT seq FROM reset
