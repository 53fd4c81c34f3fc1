-- purpose: lanes with rows that may be claimed now, and the age of each lane's oldest
-- edges: none
-- zero rows: nothing to do
-- Goes from lane to lane, and counts :row_limit rows of each at most: a lane with a long queue,
-- perhaps one that nobody serves, must not hide the lanes behind it.
WITH RECURSIVE lanes AS (
    (SELECT s.lane FROM {schema}.intent_state s
      WHERE s.ready_at IS NOT NULL
      ORDER BY s.lane
      LIMIT 1)
    UNION ALL
    SELECT (SELECT s.lane FROM {schema}.intent_state s
             WHERE s.ready_at IS NOT NULL AND s.lane > lanes.lane
             ORDER BY s.lane
             LIMIT 1)
      FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT lanes.lane, ready.ready,
       extract(epoch FROM {schema}.clock_now() - ready.oldest_at) AS oldest
  FROM lanes
 CROSS JOIN LATERAL (
       SELECT count(*) AS ready, min(s.ready_at) AS oldest_at
         FROM (SELECT s.ready_at FROM {schema}.intent_state s
                WHERE s.lane = lanes.lane AND s.ready_at <= {schema}.clock_now()
                ORDER BY s.ready_at
                LIMIT :row_limit) s) ready
 WHERE lanes.lane IS NOT NULL AND ready.ready > 0
 ORDER BY lanes.lane
