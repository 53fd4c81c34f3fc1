-- purpose: let go of what is due and has a word that no callback of the plan has asked for
-- edges: none
-- zero rows: nothing of that kind waits
DELETE FROM {schema}.to_tell t
 WHERE t.tell_id = ANY (ARRAY(
       SELECT d.tell_id FROM {schema}.to_tell d
        WHERE d.due_at <= {schema}.clock_now() AND d.word <> ALL (CAST(:words AS text[]))
        ORDER BY d.due_at, d.tell_id
        LIMIT :limit
          FOR UPDATE SKIP LOCKED))
RETURNING t.tell_id
