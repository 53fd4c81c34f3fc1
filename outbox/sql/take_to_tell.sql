-- purpose: lease what waits longest of what one consumer's plan has a function for
-- edges: none
-- zero rows: nothing of that kind is due, or other consumers have it
WITH due AS (
    SELECT t.tell_id FROM {schema}.to_tell t
     WHERE t.due_at <= {schema}.clock_now()
       AND (t.word = ANY (CAST(:words AS text[])) OR EXISTS (
           SELECT 1 FROM {schema}.intent n
             JOIN unnest(CAST(:tool_words AS text[]), CAST(:tools AS text[])) AS asked (word, tool)
               ON asked.tool = n.tool
            WHERE n.seq = t.seq AND asked.word = t.word))
     ORDER BY t.due_at, t.tell_id
     LIMIT 1
       FOR UPDATE OF t SKIP LOCKED
), taken AS (
    UPDATE {schema}.to_tell t
       SET due_at = {schema}.clock_now() + make_interval(secs => :lease_seconds),
           tries = t.tries + 1
      FROM due
     WHERE t.tell_id = due.tell_id
    RETURNING t.tell_id, t.seq, t.word, t.tries
)
SELECT taken.tell_id, taken.seq, taken.word, taken.tries, n.tool, n.intent_id
  FROM taken JOIN {schema}.intent n ON n.seq = taken.seq
