-- purpose: what a compensation undoes: the identity, arguments and outcome of its target
-- edges: none
-- zero rows: no such target
SELECT n.namespace, n.intent_id, n.generation, n.args, o.ref, o.document
  FROM {schema}.intent n
  JOIN {schema}.intent_state s ON s.seq = n.seq
  LEFT JOIN {schema}.observation o ON o.observation_id = s.observation_id
 WHERE n.seq = :seq
