-- purpose: the number that tells a further observation of one fence and kind apart
-- edges: none
-- zero rows: never
SELECT coalesce(max(o.number) + 1, 0) AS number
  FROM {schema}.observation o
 WHERE o.seq = :seq AND o.fence = :fence AND o.kind = :kind
