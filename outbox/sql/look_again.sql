-- purpose: set when an unknown row is looked at next, not before it is quiet
-- edges: none
-- zero rows: the row moved on
UPDATE {schema}.intent_state s
   SET probe_at = greatest({schema}.clock_now()
                           + make_interval(secs => CAST(:delay_seconds AS double precision)),
                           s.quiet_at)
 WHERE s.seq = :seq AND s.state = 'indeterminate' AND s.fence = :fence
RETURNING s.probe_at
