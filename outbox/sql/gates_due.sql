-- purpose: open gates whose clock has run out, of rows that still wait for them
-- edges: none; the rejection withdraws under the row's lock
-- zero rows: every gate still has time
-- A row that was called off leaves its gate open: that one must not stand in the way of others.
SELECT g.seq, g.fingerprint
  FROM {schema}.gate g JOIN {schema}.intent_state s ON s.seq = g.seq
 WHERE g.decision = 'open'
   AND s.state = 'held' AND s.live
   AND g.clock_started_at IS NOT NULL
   AND g.clock_started_at <= {schema}.clock_now()
       - make_interval(secs => :gate_limit_seconds)
 ORDER BY g.clock_started_at
 LIMIT :row_limit
