-- purpose: unknown rows whose turn has come, leased by moving probe_at forward
-- edges: none
-- zero rows: nothing is to be asked now
-- The lease keeps two reconcilers from asking twice; both asking would be harmless.
WITH due AS (
    SELECT s.seq FROM {schema}.intent_state s
     WHERE s.probe_at <= {schema}.clock_now()
     ORDER BY s.probe_at
     LIMIT :row_limit
       FOR UPDATE SKIP LOCKED
), leased AS (
    UPDATE {schema}.intent_state s
       SET probe_at = {schema}.clock_now() + make_interval(secs => :claim_lease_seconds)
      FROM due WHERE s.seq = due.seq
    RETURNING s.*
)
SELECT s.seq, s.fence, s.sends, s.handle, s.suspect, s.contract_id, s.probes, s.resends,
       n.namespace, n.intent_id, n.generation, n.tool, n.tool_version, n.lane, n.args,
       n.compensates, n.traceparent, s.parked_at IS NOT NULL AS parked,
       {guard:quiet} AS quiet,
       coalesce(s.unknown_since + make_interval(secs => c.park_after_seconds)
                <= {schema}.clock_now(), false) AS too_old,
       ({guard:key_trusted} AND {guard:in_key_window} AND {guard:resends_left}
        AND {guard:wanted_or_successor}) AS resend_later,
       ({guard:key_trusted} AND {guard:in_key_window} AND {guard:resends_left}
        AND {guard:wanted_or_successor} AND {guard:undiverged} AND {guard:quiet}
        AND {guard:no_undo} AND {guard:unpaused} AND {guard:read_set_holds}) AS may_resend
  FROM leased s
  JOIN {schema}.intent n ON n.seq = s.seq
  LEFT JOIN {schema}.contract c ON c.contract_id = s.contract_id
 ORDER BY s.seq
