-- purpose: the observation that settled a row
-- edges: none
-- zero rows: the row is not settled
SELECT o.kind, o.outcome, o.ref, o.document
  FROM {schema}.intent_state s
  JOIN {schema}.observation o ON o.observation_id = s.observation_id
 WHERE s.seq = :seq
