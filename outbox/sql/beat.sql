-- purpose: this process lives
-- edges: none
-- zero rows: the row is gone (retired after a long pause): register again
UPDATE {schema}.worker SET beat_at = {schema}.clock_now()
 WHERE worker_id = CAST(:worker_id AS uuid) AND stopped_at IS NULL
RETURNING worker_id
