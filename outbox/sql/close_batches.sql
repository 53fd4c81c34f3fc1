-- purpose: forget claim batches of which no attempt is open any more
-- edges: none
-- zero rows: every batch still has an open attempt
DELETE FROM {schema}.claim_batch b
 WHERE b.batch_id IN (
       SELECT old.batch_id FROM {schema}.claim_batch old
        WHERE NOT EXISTS (
              SELECT 1 FROM unnest(old.seqs) q(seq)
                JOIN {schema}.intent_state s ON s.seq = q.seq
               WHERE s.state IN ('executing', 'awaiting_ack'))
        ORDER BY old.batch_id
        LIMIT :batch_limit
          FOR UPDATE OF old SKIP LOCKED)
RETURNING b.batch_id
