-- purpose: how many processes of each role live, and how long ago the last of them beat; of one
--          host where one is named
-- edges: none
-- zero rows: no process has run on this outbox lately
SELECT w.role,
       count(*) FILTER (
           WHERE w.stopped_at IS NULL
             AND w.beat_at > {schema}.clock_now() - make_interval(secs => :dead_after_seconds))
           AS living,
       min(EXTRACT(epoch FROM {schema}.clock_now() - w.beat_at)) AS beat_seconds
  FROM {schema}.worker w
 WHERE CAST(:host AS text) IS NULL OR w.host = :host
 GROUP BY w.role
 ORDER BY w.role
