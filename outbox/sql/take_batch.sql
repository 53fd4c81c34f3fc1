-- purpose: lease a batch whose turn has come to one consumer, with its rows and their tools
-- edges: none
-- zero rows: another consumer has it, or it is gone
WITH taken AS (
    UPDATE {schema}.settled_batch b
       SET due_at = {schema}.clock_now() + make_interval(secs => :lease_seconds),
           tries = b.tries + 1
     WHERE b.batch_id = (
           SELECT batch_id FROM {schema}.settled_batch
            WHERE batch_id = :batch_id AND stage = :stage AND due_at <= {schema}.clock_now()
              FOR UPDATE SKIP LOCKED)
    RETURNING b.seqs, b.tries
)
SELECT n.seq, n.tool, taken.tries
  FROM taken CROSS JOIN unnest(taken.seqs) WITH ORDINALITY AS seqs(seq, place)
  JOIN {schema}.intent n ON n.seq = seqs.seq
 ORDER BY seqs.place
