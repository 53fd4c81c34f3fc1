-- purpose: what nobody knows and what waits for a person, oldest first
-- edges: none
-- zero rows: nothing is unknown, parked or diverged
SELECT s.seq, n.namespace, n.intent_id, n.generation, n.run_id, n.step, n.tool, s.state, s.fence,
       s.sends, s.live, c.key_kind, c.key_window_seconds, c.probe, latest.divergence,
       s.parked_at IS NOT NULL AS parked, s.diverged_at IS NOT NULL AS diverged,
       EXTRACT(epoch FROM {schema}.clock_now()
               - coalesce(s.unknown_since, s.diverged_at, s.parked_at, n.created_at))
           AS age_seconds,
       greatest(EXTRACT(epoch FROM s.quiet_at - {schema}.clock_now()), 0) AS quiet_in_seconds,
       greatest(EXTRACT(epoch FROM s.probe_at - {schema}.clock_now()), 0) AS look_in_seconds,
       EXTRACT(epoch FROM s.first_sent_at - {schema}.clock_now())
           + c.key_window_seconds - c.margin_seconds AS window_left_seconds,
       ({guard:key_trusted} AND {guard:in_key_window} AND {guard:resends_left}
        AND {guard:wanted_or_successor} AND {guard:undiverged} AND {guard:no_undo})
           AS may_resend,
       word.outcome AS word_outcome, word.said AS word_said, why.reason AS waits_for
  FROM {schema}.intent_state s
  JOIN {schema}.intent n ON n.seq = s.seq
  LEFT JOIN {schema}.contract c ON c.contract_id = s.contract_id
  LEFT JOIN LATERAL (
       SELECT o.outcome, coalesce(nullif(o.document ->> 'reason', ''), o.document ->> 'code') AS said
         FROM {schema}.observation o WHERE o.seq = s.seq
        ORDER BY o.observation_id DESC LIMIT 1) word ON true
  LEFT JOIN LATERAL (
       SELECT e.reason FROM {schema}.event e
        WHERE e.seq = s.seq AND e.name IN ('waiting', 'parked', 'divergence', 'expire')
        ORDER BY e.event_id DESC LIMIT 1) why ON true
  LEFT JOIN LATERAL (
       SELECT max(e.event_id) AS divergence
         FROM {schema}.intent root
         JOIN {schema}.intent step
           ON step.namespace = root.namespace AND step.intent_id = root.intent_id
         CROSS JOIN LATERAL (
              SELECT step.seq
              UNION ALL
              SELECT undo.seq FROM {schema}.intent undo WHERE undo.compensates = step.seq) family
         JOIN {schema}.event e ON e.seq = family.seq AND e.name = 'divergence'
        WHERE s.diverged_at IS NOT NULL AND root.seq = coalesce(n.compensates, n.seq)
       ) latest ON true
 WHERE (s.probe_at IS NOT NULL OR s.parked_at IS NOT NULL
        OR (s.diverged_at IS NOT NULL AND s.live))
   AND (CAST(:namespace AS text) IS NULL OR n.namespace = :namespace)
 ORDER BY coalesce(s.unknown_since, s.diverged_at, s.parked_at), s.seq
 LIMIT :row_limit
