-- purpose: keep a tool's declaration, once per distinct one
-- edges: none
-- zero rows: it is on record already; the caller reads its id
INSERT INTO {schema}.contract
    (digest, tool, version, key_kind, key_window_seconds, probe, settle_seconds, ack_seconds,
     margin_seconds, max_sends, max_resends, max_probes, park_after_seconds, declared)
VALUES (:digest, :tool, :version, :key_kind, :key_window_seconds, :probe, :settle, :ack_seconds,
     :margin_seconds, :sends, :resends, :probes, :park_after, CAST(:declared AS jsonb))
ON CONFLICT (digest) DO NOTHING
RETURNING contract_id
