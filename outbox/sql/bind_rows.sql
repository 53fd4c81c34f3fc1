-- purpose: bind what may be bound of these rows; those of :tools wait for their hand-over
-- edges: none; the condition is transitions.BIND
-- zero rows: none of them may be bound now
WITH bound AS (
    UPDATE {schema}.intent_state s
       SET bound_at = {schema}.clock_now()
     WHERE s.seq = ANY (CAST(:seqs AS bigint[])) AND {where:bind}
    RETURNING s.seq
), waiting AS (
    INSERT INTO {schema}.settled_batch (stage, seqs, due_at)
    SELECT 'bound', array_agg(n.seq ORDER BY n.seq), {schema}.clock_now()
      FROM bound JOIN {schema}.intent n ON n.seq = bound.seq
     WHERE n.tool = ANY (CAST(:tools AS text[]))
    HAVING count(*) > 0
    RETURNING seqs
)
SELECT bound.seq, EXISTS (SELECT 1 FROM waiting WHERE bound.seq = ANY (waiting.seqs)) AS waiting
  FROM bound ORDER BY bound.seq
