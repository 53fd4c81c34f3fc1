-- purpose: perform one edge of the table on a batch of moves, each with its observation and event
-- edges: the one that `Statements.edge` was asked for; {where} and {set} come from transitions.py
-- zero rows: a guard does not hold (any more); a normal answer, the caller says which row
-- an attempt's outcome is kept whether it moves the row or not; an order exists only if it was
-- carried out, and each one is a new observation
WITH m AS (
    SELECT * FROM jsonb_to_recordset(CAST(:moves AS jsonb)) AS m(
        seq bigint, from_state text, fence bigint, owner uuid, contract_id integer,
        delay_seconds double precision, final boolean, transient boolean, key_store boolean,
        decisive boolean, unready boolean, alone boolean, digest text, handle jsonb,
        may_duplicate boolean, drop_handle boolean, divergence timestamptz, adopted_from bigint,
        reason text, actor text, actor_name text, detail jsonb,
        kind text, number integer, outcome text, ref text, document jsonb)
), o AS (
    INSERT INTO {schema}.observation
        (seq, fence, kind, number, outcome, ref, document, actor, created_at)
    SELECT m.seq, coalesce(m.fence, 0), m.kind,
           CASE WHEN m.kind = 'order'
                THEN (SELECT count(*) FROM {schema}.observation old
                       WHERE old.seq = m.seq AND old.fence = coalesce(m.fence, 0)
                         AND old.kind = 'order')
                ELSE m.number END,
           m.outcome, m.ref, m.document, m.actor, {schema}.clock_now()
      FROM m
     WHERE m.kind IS NOT NULL
       AND (m.kind <> 'order' OR EXISTS (
            SELECT 1 FROM {schema}.intent_state s
              LEFT JOIN {schema}.contract c ON c.contract_id = m.contract_id
             WHERE s.seq = m.seq
               AND s.contract_id IS NOT DISTINCT FROM m.contract_id
               AND {where}))
    ON CONFLICT (seq, fence, kind, number) DO UPDATE SET number = excluded.number
    RETURNING observation_id, seq
), moved AS (
    UPDATE {schema}.intent_state s
       SET {set}
      FROM m LEFT JOIN o ON o.seq = m.seq
             LEFT JOIN {schema}.contract c ON c.contract_id = m.contract_id
     WHERE s.seq = m.seq
       AND s.contract_id IS NOT DISTINCT FROM m.contract_id
       AND {where}
    RETURNING s.seq, s.state, s.fence
), logged AS (
    INSERT INTO {schema}.event
        (at, seq, name, from_state, to_state, actor, actor_name, fence, reason, detail)
    SELECT {schema}.clock_now(), moved.seq, :edge, m.from_state, moved.state, m.actor,
           m.actor_name, moved.fence, m.reason, m.detail
      FROM moved JOIN m ON m.seq = moved.seq
), settled AS (
    INSERT INTO {schema}.settled_batch (stage, seqs, due_at)
    SELECT 'settled', array_agg(moved.seq ORDER BY moved.seq), {schema}.clock_now()
      FROM moved
     WHERE moved.state IN ('committed', 'failed', 'cancelled', 'compensated')
    HAVING count(*) > 0
)
SELECT seq, state, fence FROM moved
