-- purpose: bind what may be bound of settled batches, and forget the batches
-- edges: none; the condition is transitions.BIND
-- zero rows: others have the batches
WITH batch AS (
    DELETE FROM {schema}.settled_batch b
     WHERE b.batch_id IN (
           SELECT batch_id FROM {schema}.settled_batch
            WHERE batch_id = ANY (CAST(:batch_ids AS bigint[])) AND stage = 'settled'
              AND due_at <= {schema}.clock_now()
              FOR UPDATE SKIP LOCKED)
    RETURNING b.batch_id, b.seqs
), bound AS (
    UPDATE {schema}.intent_state s
       SET bound_at = {schema}.clock_now()
      FROM batch
     WHERE s.seq = ANY (batch.seqs) AND {where:bind}
    RETURNING s.seq
)
SELECT seqs.seq, EXISTS (SELECT 1 FROM bound WHERE bound.seq = seqs.seq) AS bound
  FROM batch CROSS JOIN unnest(batch.seqs) AS seqs(seq)
