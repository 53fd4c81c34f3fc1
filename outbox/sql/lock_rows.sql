-- purpose: lock state rows in ascending seq, with everything a decision under the lock looks at
-- edges: none; the edge's own statement follows in the same transaction
-- zero rows: no such row
SELECT s.*, {schema}.clock_now() AS now,
       EXISTS (SELECT 1 FROM {schema}.worker w WHERE w.worker_id = s.owner
               AND w.stopped_at IS NULL
               AND w.beat_at > {schema}.clock_now() - make_interval(secs => :dead_after_seconds)
       ) AS owner_alive
  FROM {schema}.intent_state s
 WHERE s.seq = ANY (CAST(:seqs AS bigint[]))
 ORDER BY s.seq
   FOR UPDATE OF s
