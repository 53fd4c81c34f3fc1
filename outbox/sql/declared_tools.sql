-- purpose: what tools have declared, the newest version and declaration first, and whether a live
--          worker has that version now
-- edges: none
-- zero rows: no worker has ever had the tool
SELECT c.tool, c.version, c.declared,
       EXISTS (SELECT 1 FROM {schema}.worker w
                WHERE w.stopped_at IS NULL
                  AND w.beat_at > {schema}.clock_now() - make_interval(secs => :dead_after_seconds)
                  AND (c.tool || '@' || c.version) = ANY (w.tools)) AS served
  FROM {schema}.contract c
 WHERE (CAST(:tool AS text) IS NULL OR c.tool = :tool)
 ORDER BY c.tool, c.version DESC, c.contract_id DESC
