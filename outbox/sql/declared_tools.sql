-- purpose: what tools have declared, the newest version and declaration first, and whether a live
--          worker has that version now, and a live reconciler
-- edges: none
-- zero rows: no worker has ever had the tool
SELECT c.tool, c.version, c.declared,
       coalesce('worker' = ANY (known.roles), false) AS served,
       coalesce('reconciler' = ANY (known.roles), false) AS reconciled
  FROM {schema}.contract c
 CROSS JOIN LATERAL (
       SELECT array_agg(DISTINCT w.role) AS roles FROM {schema}.worker w
        WHERE w.stopped_at IS NULL
          AND w.beat_at > {schema}.clock_now() - make_interval(secs => :dead_after_seconds)
          AND (c.tool || '@' || c.version) = ANY (w.tools)) known
 WHERE (CAST(:tool AS text) IS NULL OR c.tool = :tool)
 ORDER BY c.tool, c.version DESC, c.contract_id DESC
