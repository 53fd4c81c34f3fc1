-- purpose: insert the intent that undoes a target, and lock the target by `undo`
-- edges: put (queued), on the compensation
-- zero rows: the target is not committed or indeterminate, not quiet, adopted, or being undone
WITH target AS (
    SELECT n.*, s.state AS target_state, s.fence AS target_fence
      FROM {schema}.intent_state s JOIN {schema}.intent n ON n.seq = s.seq
     WHERE s.seq = :seq AND s.state IN ('committed', 'indeterminate')
       AND {guard:no_undo} AND {guard:no_adoption} AND {guard:quiet}
), earlier AS (
    SELECT p.seq, p.generation
      FROM {schema}.intent p JOIN target ON p.namespace = target.namespace
     WHERE p.intent_id = :intent_id
), n AS (
    INSERT INTO {schema}.intent
        (namespace, intent_id, generation, run_id, tool, tool_version, lane, args, fingerprint,
         content, compensates, traceparent, tracestate, created_at)
    SELECT target.namespace, :intent_id,
           coalesce((SELECT max(generation) + 1 FROM earlier), 0),
           target.run_id, :tool, :version, :lane, CAST(:args AS jsonb), :fingerprint, :content,
           target.seq, target.traceparent, target.tracestate, {schema}.clock_now()
      FROM target
    RETURNING seq, generation, lane
), past AS (
    UPDATE {schema}.intent_state s SET live = false, wanted = false
      FROM earlier WHERE s.seq = earlier.seq
), inserted AS (
    INSERT INTO {schema}.intent_state (seq, generation, lane, state, ready_at)
    SELECT n.seq, n.generation, n.lane, 'queued', {schema}.clock_now() FROM n
), marked AS (
    UPDATE {schema}.intent_state s SET undo = n.seq FROM n WHERE s.seq = :seq
), logged AS (
    INSERT INTO {schema}.event
        (at, seq, name, from_state, to_state, actor, actor_name, fence, reason, detail)
    SELECT {schema}.clock_now(), n.seq, 'put', NULL, 'queued', :actor, :actor_name, 0, :reason,
           jsonb_build_object('compensates', CAST(:seq AS bigint))
      FROM n
    UNION ALL
    SELECT {schema}.clock_now(), target.seq, 'undo_ordered', target.target_state,
           target.target_state, :actor, :actor_name, target.target_fence, :reason,
           jsonb_build_object('undo', n.seq)
      FROM target CROSS JOIN n
)
SELECT seq, generation FROM n
