-- purpose: end an open divergence on all rows that it marked; what was waiting may bind and move
-- edges: none
-- zero rows: none of them is marked
WITH reset AS (
    UPDATE {schema}.intent_state s
       SET diverged_at = NULL
     WHERE s.seq = ANY (CAST(:seqs AS bigint[])) AND s.diverged_at IS NOT NULL
    RETURNING s.seq
), waiting AS (
    SELECT s.seq FROM {schema}.intent_state s
     WHERE s.seq = ANY (CAST(:seqs AS bigint[]))
       AND s.live AND s.settled_at IS NOT NULL AND s.bound_at IS NULL
), again AS (
    INSERT INTO {schema}.settled_batch (stage, seqs, due_at)
    SELECT 'settled', array_agg(seq ORDER BY seq), {schema}.clock_now() FROM waiting
    HAVING count(*) > 0
)
SELECT seq FROM reset ORDER BY seq
