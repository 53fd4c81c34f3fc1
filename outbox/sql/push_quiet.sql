-- purpose: a living process still runs these calls beyond their limit: their rows are not quiet
-- edges: none
-- zero rows: no such row
UPDATE {schema}.intent_state s
   SET quiet_at = greatest(s.quiet_at, {schema}.clock_now()
                  + make_interval(secs => coalesce(c.settle_seconds, :settle_seconds)))
  FROM {schema}.intent_state x
  LEFT JOIN {schema}.contract c ON c.contract_id = x.contract_id
 WHERE x.seq = s.seq AND s.seq = ANY (CAST(:seqs AS bigint[]))
RETURNING s.seq
