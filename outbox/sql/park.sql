-- purpose: put an unknown row in front of a person; slower looks go on
-- edges: none
-- zero rows: the row moved on
WITH old AS (
    SELECT s.seq, s.parked_at FROM {schema}.intent_state s
     WHERE s.seq = :seq AND s.state = 'indeterminate' AND s.fence = :fence
       FOR UPDATE
), parked AS (
    UPDATE {schema}.intent_state s
       SET parked_at = coalesce(s.parked_at, {schema}.clock_now()),
           probe_at = {schema}.clock_now()
                      + make_interval(secs => CAST(:delay_seconds AS double precision))
      FROM old WHERE s.seq = old.seq
), logged AS (
    INSERT INTO {schema}.event (at, seq, name, from_state, to_state, actor, fence, reason)
    SELECT {schema}.clock_now(), old.seq, 'parked', 'indeterminate', 'indeterminate',
           'reconciler', :fence, :reason
      FROM old WHERE old.parked_at IS NULL
)
SELECT old.parked_at IS NULL AS newly_parked FROM old
