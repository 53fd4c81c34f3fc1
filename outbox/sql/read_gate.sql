-- purpose: a gate as it stands, with the state of its row
-- edges: none
-- zero rows: the row has no gate
SELECT g.seq, g.decision, g.fingerprint, g.actor, g.reason, g.opened_at, g.clock_started_at,
       g.decided_at, s.state, s.live
  FROM {schema}.gate g JOIN {schema}.intent_state s ON s.seq = g.seq
 WHERE g.seq = :seq
