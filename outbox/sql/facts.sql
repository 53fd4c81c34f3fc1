-- purpose: keep facts that an outcome proves beside the edge: trust, cut-offs, open sends, quiet
-- edges: none
-- zero rows: no such row
UPDATE {schema}.intent_state s
   SET key_trusted = s.key_trusted AND NOT f.distrust,
       cut_offs = s.cut_offs + CASE WHEN f.cut_off THEN 1 ELSE 0 END,
       unresolved = s.unresolved OR f.unresolve,
       quiet_at = CASE WHEN f.quiet THEN {schema}.clock_now() ELSE s.quiet_at END
  FROM jsonb_to_recordset(CAST(:facts AS jsonb)) AS f(
       seq bigint, distrust boolean, cut_off boolean, unresolve boolean, quiet boolean)
 WHERE s.seq = f.seq
RETURNING s.seq
