-- purpose: batches of one stage whose turn has come, oldest first
-- edges: none
-- zero rows: nothing waits
SELECT b.batch_id FROM {schema}.settled_batch b
 WHERE b.stage = :stage AND b.due_at <= {schema}.clock_now()
 ORDER BY b.batch_id
 LIMIT :limit
