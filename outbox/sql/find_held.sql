-- purpose: held rows whose turn has come, and live rows elsewhere that met an open divergence
-- edges: none; `hold.decide` decides under the locks of the step
-- zero rows: nobody waits to be looked at
SELECT found.seq
  FROM ((SELECT s.seq, s.hold_at AS since FROM {schema}.intent_state s
          WHERE s.hold_at <= {schema}.clock_now()
          ORDER BY s.hold_at
          LIMIT :row_limit)
        UNION ALL
        (SELECT s.seq, s.diverged_at FROM {schema}.intent_state s
          WHERE s.diverged_at IS NOT NULL AND s.live AND s.state IN ('queued', 'executing')
          LIMIT :row_limit)) found
 ORDER BY found.since
 LIMIT :row_limit
