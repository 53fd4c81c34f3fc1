-- purpose: let go of what has been due for long and no function of the plan has asked for
-- edges: none
-- zero rows: nothing of that kind waits
-- During a rollout the other consumers' plan may have the function: so not at once.
DELETE FROM {schema}.to_tell d
 WHERE d.tell_id = ANY (ARRAY(
       SELECT t.tell_id FROM {schema}.to_tell t
        WHERE t.due_at <= {schema}.clock_now() - make_interval(secs => :kept_seconds)
          AND NOT (t.word = ANY (CAST(:words AS text[])) OR EXISTS (
              SELECT 1 FROM {schema}.intent n
                JOIN unnest(CAST(:tool_words AS text[]), CAST(:tools AS text[])) AS asked (word, tool)
                  ON asked.tool = n.tool
               WHERE n.seq = t.seq AND asked.word = t.word))
        ORDER BY t.due_at, t.tell_id
        LIMIT :limit
          FOR UPDATE OF t SKIP LOCKED))
RETURNING d.tell_id
