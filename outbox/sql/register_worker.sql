-- purpose: one row per process incarnation, with the tools and lanes it serves
-- edges: none
-- zero rows: never
INSERT INTO {schema}.worker (worker_id, role, host, pid, tools, lanes, started_at, beat_at)
VALUES (CAST(:worker_id AS uuid), :role, :host, :pid, CAST(:tools AS text[]),
        CAST(:lanes AS text[]), {schema}.clock_now(), {schema}.clock_now())
ON CONFLICT (worker_id) DO UPDATE SET beat_at = excluded.beat_at, stopped_at = NULL
RETURNING worker_id
