-- purpose: this process lives
-- edges: none
-- zero rows: the row is gone (retired after a long pause), or the schema has gone beyond this
--            process: register again, which tells the two apart
UPDATE {schema}.worker w SET beat_at = {schema}.clock_now()
 WHERE worker_id = CAST(:worker_id AS uuid) AND stopped_at IS NULL
   AND NOT EXISTS (SELECT 1 FROM {schema}.meta m
                    WHERE m.name = 'works_from' AND m.value > coalesce(w.revision, '0001'))
RETURNING worker_id
