-- purpose: decide an open gate for exactly what its reviewer saw; hold_pass looks at the row next
-- edges: none; hold_pass releases, a rejection withdraws in the same transaction
-- zero rows: no gate, decided already, other arguments, or the row is held no more
WITH decided AS (
    UPDATE {schema}.gate g
       SET decision = :decision, decided_at = {schema}.clock_now(), actor = :actor_name,
           reason = :reason
      FROM {schema}.intent_state s
     WHERE g.seq = :seq AND s.seq = g.seq AND s.state = 'held' AND s.live
       AND g.decision = 'open' AND g.fingerprint = :fingerprint
    RETURNING g.seq, s.fence
), poked AS (
    UPDATE {schema}.intent_state s SET hold_at = {schema}.clock_now()
      FROM decided WHERE s.seq = decided.seq
), logged AS (
    INSERT INTO {schema}.event
        (at, seq, name, from_state, to_state, actor, actor_name, fence, reason)
    SELECT {schema}.clock_now(), decided.seq, 'gate_' || :decision, 'held', 'held', :actor,
           :actor_name, decided.fence, :reason
      FROM decided
)
SELECT seq FROM decided
