-- purpose: how much is under way, by partial indexes alone; each count stops at the limit
-- edges: none
-- zero rows: never
SELECT (SELECT count(*) FROM (SELECT 1 FROM {schema}.intent_state
         WHERE ready_at IS NOT NULL LIMIT :row_limit) found) AS queued,
       (SELECT count(*) FROM (SELECT 1 FROM {schema}.intent_state
         WHERE hold_at IS NOT NULL LIMIT :row_limit) found) AS held,
       (SELECT count(*) FROM (SELECT 1 FROM {schema}.intent_state
         WHERE probe_at IS NOT NULL OR (parked_at IS NOT NULL AND state = 'indeterminate')
         LIMIT :row_limit) found) AS unknown,
       (SELECT count(*) FROM (SELECT 1 FROM {schema}.intent_state
         WHERE parked_at IS NOT NULL LIMIT :row_limit) found) AS parked,
       (SELECT count(*) FROM (SELECT 1 FROM {schema}.intent_state
         WHERE diverged_at IS NOT NULL LIMIT :row_limit) found) AS diverged,
       (SELECT count(*) FROM {schema}.intent_state s
         WHERE s.seq IN (SELECT unnest(b.seqs) FROM {schema}.claim_batch b)
           AND s.state IN ('executing', 'awaiting_ack')) AS open_attempts
