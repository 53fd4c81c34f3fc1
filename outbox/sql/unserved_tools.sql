-- purpose: tools of ready rows that no live worker has at the row's version
-- edges: none
-- zero rows: every ready row may be taken by somebody
SELECT ready.tool, ready.tool_version, count(*) AS waiting
  FROM (SELECT n.tool, n.tool_version
          FROM {schema}.intent_state s
          JOIN {schema}.intent n ON n.seq = s.seq
         WHERE s.ready_at IS NOT NULL AND s.ready_at <= {schema}.clock_now()
         ORDER BY s.ready_at
         LIMIT :row_limit) ready
 WHERE NOT EXISTS (
       SELECT 1 FROM {schema}.worker w
        WHERE w.stopped_at IS NULL AND w.role = 'worker'
          AND w.beat_at > {schema}.clock_now() - make_interval(secs => :dead_after_seconds)
          AND (ready.tool || '@' || ready.tool_version) = ANY (w.tools))
 GROUP BY ready.tool, ready.tool_version
 ORDER BY ready.tool, ready.tool_version
