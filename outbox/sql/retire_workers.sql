-- purpose: forget heartbeat rows of processes that ended long ago
-- edges: none
-- zero rows: none is that old
DELETE FROM {schema}.worker w
 WHERE coalesce(w.stopped_at, w.beat_at)
       < {schema}.clock_now() - make_interval(secs => 50 * :dead_after_seconds)
   AND NOT EXISTS (SELECT 1 FROM {schema}.claim_batch b WHERE b.owner = w.worker_id)
RETURNING w.worker_id
