-- purpose: lock all generations of the step that a row belongs to, in ascending seq
-- edges: none; supersede, release, adopt, compensate, divergence decide in a later statement
-- zero rows: no such row
SELECT s.*, n.fingerprint, n.content, {schema}.clock_now() AS now, true AS owner_alive,
       g.decision AS gate
  FROM {schema}.intent_state s
  JOIN {schema}.intent n ON n.seq = s.seq
  LEFT JOIN {schema}.gate g ON g.seq = s.seq
 WHERE s.seq IN (
       SELECT other.seq FROM {schema}.intent own
         JOIN {schema}.intent other
           ON other.namespace = own.namespace AND other.intent_id = own.intent_id
        WHERE own.seq = :seq)
 ORDER BY s.seq
   FOR UPDATE OF s
