-- purpose: insert generation 0 of steps whose ids are unused, with state, event and gate
-- edges: put, put.held
-- zero rows: every id is stored already; find_intents says with which content
WITH d AS (
    SELECT * FROM jsonb_to_recordset(CAST(:drafts AS jsonb)) AS d(
        namespace text COLLATE "C", intent_id text COLLATE "C", run_id text, step text, tool text,
        tool_version integer, lane text, args jsonb, fingerprint text, content text,
        read_set jsonb, not_before timestamptz, deadline timestamptz, traceparent text,
        tracestate text, held_for text)
), n AS (
    INSERT INTO {schema}.intent
        (namespace, intent_id, generation, run_id, step, tool, tool_version, lane, args,
         fingerprint, content, read_set, not_before, deadline, traceparent, tracestate,
         created_at)
    SELECT d.namespace, d.intent_id, 0, d.run_id, d.step, d.tool, d.tool_version, d.lane, d.args,
           d.fingerprint, d.content, d.read_set, d.not_before, d.deadline, d.traceparent,
           d.tracestate, {schema}.clock_now()
      FROM d
     -- One order for all writers: two batches with the same ids wait, and never deadlock.
     ORDER BY d.namespace, d.intent_id
    ON CONFLICT (namespace, intent_id, generation) DO NOTHING
    RETURNING seq, namespace, intent_id
), s AS (
    INSERT INTO {schema}.intent_state
        (seq, generation, state, lane, ready_at, hold_at, withdraw_at, deadline, read_set)
    SELECT n.seq, 0, CASE WHEN d.held_for IS NULL THEN 'queued' ELSE 'held' END, d.lane,
           CASE WHEN d.held_for IS NULL THEN greatest({schema}.clock_now(), d.not_before) END,
           CASE WHEN d.held_for IS NOT NULL THEN {schema}.clock_now() END,
           d.deadline, d.deadline, d.read_set
      FROM n JOIN d ON d.namespace = n.namespace AND d.intent_id = n.intent_id
    RETURNING seq, state
), g AS (
    INSERT INTO {schema}.gate (seq, opened_at, fingerprint, policy)
    SELECT n.seq, {schema}.clock_now(), d.fingerprint, d.held_for
      FROM n JOIN d ON d.namespace = n.namespace AND d.intent_id = n.intent_id
     WHERE d.held_for IS NOT NULL
), e AS (
    INSERT INTO {schema}.event (at, seq, name, to_state, actor)
    SELECT {schema}.clock_now(), s.seq,
           CASE s.state WHEN 'queued' THEN 'put' ELSE 'put.held' END, s.state, 'planner'
      FROM s
)
SELECT n.seq, n.namespace, n.intent_id FROM n
