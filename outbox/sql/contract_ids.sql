-- purpose: the ids of declarations on record
-- edges: none
-- zero rows: none of them is on record
SELECT digest, contract_id FROM {schema}.contract
 WHERE digest = ANY (CAST(:digests AS text[]))
