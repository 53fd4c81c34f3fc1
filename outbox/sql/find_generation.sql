-- purpose: one generation of a step, with what its successor takes over from it
-- edges: none
-- zero rows: there is no such generation
SELECT n.seq, n.namespace, n.intent_id, n.generation, n.tool, n.tool_version, n.lane, n.run_id,
       n.step, n.fingerprint, n.content, n.compensates
  FROM {schema}.intent n
 WHERE n.namespace = :namespace AND n.intent_id = :intent_id AND n.generation = :generation
