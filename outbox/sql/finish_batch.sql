-- purpose: keep what is left of a leased batch for later, or forget the batch
-- edges: none
-- zero rows: the lease had passed, and another consumer took the batch
WITH kept AS (
    UPDATE {schema}.settled_batch b
       SET seqs = CAST(:seqs AS bigint[]),
           due_at = {schema}.clock_now() + make_interval(secs => :delay_seconds)
     WHERE b.batch_id = :batch_id AND b.tries = :tries
       AND cardinality(CAST(:seqs AS bigint[])) > 0
    RETURNING b.batch_id
), gone AS (
    DELETE FROM {schema}.settled_batch b
     WHERE b.batch_id = :batch_id AND b.tries = :tries
       AND cardinality(CAST(:seqs AS bigint[])) = 0
    RETURNING b.batch_id
)
SELECT batch_id FROM kept UNION ALL SELECT batch_id FROM gone
