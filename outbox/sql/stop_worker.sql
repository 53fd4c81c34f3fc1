-- purpose: this process ends on purpose; what it still holds lapses at once
-- edges: none
-- zero rows: it was retired already
UPDATE {schema}.worker SET stopped_at = {schema}.clock_now()
 WHERE worker_id = CAST(:worker_id AS uuid)
RETURNING worker_id
