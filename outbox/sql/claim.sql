-- purpose: claim ready rows of one lane, oldest first, and hand over what an attempt needs
-- edges: claim
-- zero rows: nothing is ready, or others hold the ready rows locked
-- the declaration is looked up for rows that were given back unready, and for the picked ones
-- :low_water skips index entries of rows that were claimed long ago but are not vacuumed yet
WITH asked AS (
    SELECT CAST(:owner AS uuid) AS owner, CAST(:alone AS boolean) AS alone,
           CAST('queued' AS text) AS from_state
), picked AS (
    SELECT s.seq, s.ready_at
      FROM {schema}.intent_state s
     CROSS JOIN LATERAL (
           SELECT asked.*, CAST(CAST(:contracts AS jsonb) ->> (
                      SELECT n.tool || '@' || n.tool_version FROM {schema}.intent n
                       WHERE n.seq = s.seq) AS integer) AS contract_id
             FROM asked) m
     WHERE s.lane = :lane
       AND s.ready_at IS NOT NULL
       AND s.ready_at >= CAST(:low_water AS timestamptz)
       AND s.suspect = CAST(:alone AS boolean)
       AND {where:claim}
     ORDER BY s.ready_at
     LIMIT :limit
       FOR UPDATE OF s SKIP LOCKED
), m AS (
    SELECT n.*, picked.ready_at, asked.owner,
           CAST(CAST(:contracts AS jsonb) ->> (n.tool || '@' || n.tool_version) AS integer)
               AS contract_id
      FROM picked JOIN {schema}.intent n ON n.seq = picked.seq CROSS JOIN asked
), moved AS (
    UPDATE {schema}.intent_state s
       SET {set:claim}
      FROM m
     WHERE s.seq = m.seq
    RETURNING s.seq, s.fence, s.sends, s.handle, s.suspect, s.contract_id
), batch AS (
    INSERT INTO {schema}.claim_batch (owner, seqs, created_at)
    SELECT CAST(:owner AS uuid), array_agg(seq ORDER BY seq), {schema}.clock_now() FROM moved
    HAVING count(*) > 0
), logged AS (
    INSERT INTO {schema}.event (at, seq, name, from_state, to_state, actor, actor_name, fence)
    SELECT {schema}.clock_now(), seq, 'claim', 'queued', 'executing', 'worker', :owner, fence
      FROM moved
)
SELECT moved.*, m.namespace, m.intent_id, m.generation, m.tool, m.tool_version, m.lane, m.args,
       m.compensates, m.traceparent, m.ready_at
  FROM moved JOIN m ON m.seq = moved.seq
 ORDER BY moved.seq
