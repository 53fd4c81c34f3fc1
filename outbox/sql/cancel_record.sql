-- purpose: call off a row whose request may be on the wire: no further send, the outcome counts
-- edges: none
-- zero rows: nothing is on the wire (any more), or the cancel is recorded already
WITH recorded AS (
    UPDATE {schema}.intent_state s
       SET wanted = false
     WHERE s.seq = :seq AND {guard:live} AND s.wanted
       AND s.state IN ('awaiting_ack', 'indeterminate')
    RETURNING s.seq, s.state, s.fence
)
INSERT INTO {schema}.event (at, seq, name, from_state, to_state, actor, fence)
SELECT {schema}.clock_now(), seq, 'cancel_recorded', state, state, 'planner', fence FROM recorded
RETURNING seq
