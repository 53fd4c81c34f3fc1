-- purpose: end a live row's turn and insert the next generation, held until `release` lets it go
-- edges: put.held for the new row; the old row was withdrawn before, where nothing was sent
-- zero rows: the row is not the step's live one
-- the step's rows are locked by the caller; the gate's decision is not taken over
WITH retired AS (
    UPDATE {schema}.intent_state s
       SET live = false, wanted = false
     WHERE s.seq = :seq AND {guard:live}
    RETURNING s.seq, s.state, s.fence, s.diverged_at
), n AS (
    INSERT INTO {schema}.intent
        (namespace, intent_id, generation, run_id, step, tool, tool_version, lane, args,
         fingerprint, content, read_set, parent, deadline, traceparent, tracestate, created_at)
    SELECT own.namespace, own.intent_id, own.generation + 1, own.run_id, own.step, own.tool,
           coalesce(CAST(:tool_version AS integer), own.tool_version),
           coalesce(CAST(:lane AS text), own.lane), coalesce(CAST(:args AS jsonb), own.args),
           coalesce(CAST(:fingerprint AS text), own.fingerprint),
           coalesce(CAST(:content AS text), own.content),
           own.read_set, own.parent, coalesce(CAST(:deadline AS timestamptz), own.deadline),
           own.traceparent, own.tracestate, {schema}.clock_now()
      FROM retired JOIN {schema}.intent own ON own.seq = retired.seq
    RETURNING seq, namespace, intent_id, generation, tool, lane, run_id, step, fingerprint,
              read_set, deadline
), s AS (
    INSERT INTO {schema}.intent_state
        (seq, generation, state, lane, hold_at, withdraw_at, deadline, read_set, diverged_at)
    SELECT n.seq, n.generation, 'held', n.lane, {schema}.clock_now(), n.deadline, n.deadline,
           n.read_set, retired.diverged_at
      FROM n CROSS JOIN retired
), g AS (
    INSERT INTO {schema}.gate (seq, opened_at, fingerprint, policy)
    SELECT n.seq, {schema}.clock_now(), n.fingerprint, before.policy
      FROM n CROSS JOIN retired JOIN {schema}.gate before ON before.seq = retired.seq
), e AS (
    INSERT INTO {schema}.event (at, seq, name, from_state, to_state, actor, fence, detail)
    SELECT {schema}.clock_now(), retired.seq, 'supersede', retired.state, retired.state,
           'planner', retired.fence, jsonb_build_object('generation', n.generation)
      FROM retired CROSS JOIN n
    UNION ALL
    SELECT {schema}.clock_now(), n.seq, 'put.held', NULL, 'held', 'planner', 0, NULL FROM n
)
SELECT n.seq, n.namespace, n.intent_id, n.generation, n.tool, n.lane, n.run_id, n.step,
       retired.state AS retired_as
  FROM n CROSS JOIN retired
