-- purpose: effect references on record for rows and for their compensations
-- edges: none
-- zero rows: none was recorded
SELECT o.seq AS seq, o.ref FROM {schema}.observation o
 WHERE o.seq = ANY (CAST(:seqs AS bigint[])) AND o.ref IS NOT NULL
UNION
SELECT n.compensates, o.ref FROM {schema}.intent n
  JOIN {schema}.observation o ON o.seq = n.seq
 WHERE n.compensates = ANY (CAST(:seqs AS bigint[])) AND o.ref IS NOT NULL
