-- purpose: whose effect a compensation of a row would undo: an adopter's owner, else the row
-- edges: none
-- zero rows: no such row
SELECT n.seq, n.tool, n.tool_version, n.compensates, n.intent_id, n.generation, s.state
  FROM {schema}.intent_state own
  JOIN {schema}.intent n ON n.seq = coalesce(own.adopted_from, own.seq)
  JOIN {schema}.intent_state s ON s.seq = n.seq
 WHERE own.seq = :seq
