-- purpose: lock all generations of a step, ascending, and nothing else; facts are read afterwards
-- edges: none
-- zero rows: no such step
-- A statement that waits for a row lock sees the row as it is then, but what it joined as it was:
-- so a contract, a gate or a generation is read by a later statement, under these locks.
SELECT s.seq
  FROM {schema}.intent_state s
 WHERE s.seq IN (SELECT n.seq FROM {schema}.intent n
                  WHERE n.namespace = :namespace AND n.intent_id = :intent_id)
 ORDER BY s.seq
   FOR UPDATE OF s
