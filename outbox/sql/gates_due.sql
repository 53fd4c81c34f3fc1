-- purpose: open gates whose clock has run out
-- edges: none; the rejection withdraws under the row's lock
-- zero rows: every gate still has time
SELECT g.seq, g.fingerprint
  FROM {schema}.gate g
 WHERE g.decision = 'open'
   AND g.clock_started_at IS NOT NULL
   AND g.clock_started_at <= {schema}.clock_now()
       - make_interval(secs => :gate_limit_seconds)
 ORDER BY g.clock_started_at
 LIMIT :row_limit
