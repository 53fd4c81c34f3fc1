-- purpose: one row per process incarnation, with the tools and lanes it serves and the ackbox it
--          runs
-- edges: none
-- zero rows: the schema has gone beyond what this version of ackbox can work with
INSERT INTO {schema}.worker
       (worker_id, role, host, pid, tools, lanes, version, revision, started_at, beat_at)
SELECT CAST(:worker_id AS uuid), CAST(:role AS text), CAST(:host AS text),
       CAST(:pid AS integer), CAST(:tools AS text[]), CAST(:lanes AS text[]),
       CAST(:version AS text), CAST(:revision AS text),
       {schema}.clock_now(), {schema}.clock_now()
 WHERE NOT EXISTS (SELECT 1 FROM {schema}.meta m
                    WHERE m.name = 'works_from' AND m.value > CAST(:revision AS text))
ON CONFLICT (worker_id) DO UPDATE SET beat_at = excluded.beat_at, stopped_at = NULL
RETURNING worker_id
