-- purpose: a held row stays held: look again later, show why, park it, start its gate's clock
-- edges: none
-- zero rows: it is not held any more
-- The delay is a quarter of the row's age, so that waiting long costs few looks.
WITH old AS (
    SELECT s.seq, s.parked_at, s.fence, n.created_at
      FROM {schema}.intent_state s JOIN {schema}.intent n ON n.seq = s.seq
     WHERE s.seq = :seq AND s.state = 'held'
), shown AS (
    SELECT e.reason, e.detail FROM {schema}.event e
     WHERE e.seq = :seq AND e.name IN ('waiting', 'parked', 'hold', 'put')
     ORDER BY e.event_id DESC
     LIMIT 1
), rearmed AS (
    UPDATE {schema}.intent_state s
       SET hold_at = {schema}.clock_now() + make_interval(secs =>
               least(:backoff_cap_seconds, greatest(:backoff_base_seconds,
                   EXTRACT(epoch FROM {schema}.clock_now() - old.created_at) / 4))
               * (0.5 + CAST(:share AS double precision) / 2)),
           parked_at = CASE WHEN CAST(:needs_person AS boolean)
                            THEN coalesce(s.parked_at, {schema}.clock_now()) END
      FROM old
     WHERE s.seq = old.seq
    RETURNING s.seq
), clock AS (
    UPDATE {schema}.gate g
       SET clock_started_at = {schema}.clock_now()
     WHERE g.seq = :seq AND CAST(:starts_gate_clock AS boolean)
       AND g.decision = 'open' AND g.clock_started_at IS NULL
), logged AS (
    INSERT INTO {schema}.event
        (at, seq, name, from_state, to_state, actor, fence, reason, detail)
    SELECT {schema}.clock_now(), old.seq,
           CASE WHEN CAST(:needs_person AS boolean) THEN 'parked' ELSE 'waiting' END,
           'held', 'held', 'outbox', old.fence, :reason, CAST(:detail AS jsonb)
      FROM old
     WHERE NOT EXISTS (
           SELECT 1 FROM shown
            WHERE shown.reason = :reason
              AND shown.detail IS NOT DISTINCT FROM CAST(:detail AS jsonb)
              AND (old.parked_at IS NOT NULL) = CAST(:needs_person AS boolean))
)
SELECT old.parked_at IS NULL AND CAST(:needs_person AS boolean) AS newly_parked FROM old
