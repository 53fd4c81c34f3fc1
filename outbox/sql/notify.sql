-- purpose: ring lanes for whoever listens; the payload is the lane and nothing else
-- edges: none
-- zero rows: no lane was given
SELECT lane, pg_notify(:channel, lane) FROM unnest(CAST(:lanes AS text[])) AS lane
