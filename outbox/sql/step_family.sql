-- purpose: the rows that share divergences with a row: its step and the step's compensations,
--          each with its latest divergence on record
-- edges: none
-- zero rows: no such row
WITH root AS (
    SELECT coalesce(n.compensates, n.seq) AS seq FROM {schema}.intent n WHERE n.seq = :seq
), step AS (
    SELECT other.seq
      FROM root
      JOIN {schema}.intent own ON own.seq = root.seq
      JOIN {schema}.intent other
        ON other.namespace = own.namespace AND other.intent_id = own.intent_id
), family AS (
    SELECT seq FROM step
    UNION
    SELECT c.seq FROM {schema}.intent c JOIN step ON c.compensates = step.seq
)
SELECT family.seq, n.compensates,
       (SELECT max(e.event_id) FROM {schema}.event e
         WHERE e.seq = family.seq AND e.name = 'divergence') AS divergence
  FROM family JOIN {schema}.intent n ON n.seq = family.seq
 ORDER BY family.seq
