-- purpose: the first schema. {schema} is the quoted schema name, rendered once.
-- Nothing here depends on search_path: planners run our statements on their own connection.

-- STABLE over statement_timestamp(): a VOLATILE clock would drop ready_at from index conditions.
-- Tests replace this function to move the store's time; nothing else reads a clock.
CREATE FUNCTION {schema}.clock_now() RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT statement_timestamp()';

CREATE TABLE {schema}.outbox (
    name text PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
-- Facts about the schema itself, such as the digest of the generated edges that stand in it.
CREATE TABLE {schema}.meta (
    name text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE {schema}.intent (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    intent_id text COLLATE "C" NOT NULL,
    generation integer NOT NULL CHECK (generation >= 0),
    run_id text,
    step text,
    tool text NOT NULL,
    tool_version integer NOT NULL,
    lane text NOT NULL,
    args jsonb NOT NULL,
    fingerprint text NOT NULL,
    content text NOT NULL,
    read_set jsonb,
    parent text,
    compensates bigint,
    not_before timestamptz,
    deadline timestamptz,
    traceparent text,
    tracestate text,
    created_at timestamptz NOT NULL,
    UNIQUE (namespace, intent_id, generation)
);
CREATE INDEX intent_compensates ON {schema}.intent (compensates) WHERE compensates IS NOT NULL;

CREATE FUNCTION {schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ackbox: % is immutable', TG_TABLE_NAME USING ERRCODE = 'AB002';
END $$;
CREATE TRIGGER intent_is_immutable BEFORE UPDATE ON {schema}.intent
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();

CREATE TABLE {schema}.contract (
    contract_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest text NOT NULL UNIQUE,
    tool text NOT NULL,
    version integer NOT NULL,
    key_kind text NOT NULL,
    key_window_seconds double precision,
    probe text NOT NULL,
    settle_seconds double precision NOT NULL,
    ack_seconds double precision NOT NULL,
    margin_seconds double precision NOT NULL,
    max_sends integer NOT NULL,
    max_resends integer NOT NULL,
    max_probes integer NOT NULL,
    park_after_seconds double precision NOT NULL,
    declared jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE TRIGGER contract_is_immutable BEFORE UPDATE ON {schema}.contract
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();

-- Narrow and mutable. ready_at is the only indexed column that the hot path changes; hold_at,
-- probe_at, withdraw_at and parked_at stay null on it, so they cost it nothing. No foreign key:
-- both rows come from one statement, and the check would be paid at every put.
CREATE TABLE {schema}.intent_state (
    seq bigint PRIMARY KEY,
    generation integer NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    ready_at timestamptz,
    deadline timestamptz,
    withdraw_at timestamptz,
    hold_at timestamptz,
    ack_by timestamptz,
    first_sent_at timestamptz,
    quiet_at timestamptz,
    unknown_since timestamptz,
    unready_since timestamptz,
    diverged_at timestamptz,
    probe_at timestamptz,
    parked_at timestamptz,
    settled_at timestamptz,
    bound_at timestamptz,
    handed_at timestamptz,
    hand_by timestamptz,
    undo bigint,
    adopted_from bigint,
    observation_id bigint,
    contract_id integer,
    attempts integer NOT NULL DEFAULT 0,
    sends integer NOT NULL DEFAULT 0,
    resends integer NOT NULL DEFAULT 0,
    probes integer NOT NULL DEFAULT 0,
    cut_offs integer NOT NULL DEFAULT 0,
    suspect_claims integer NOT NULL DEFAULT 0,
    suspect boolean NOT NULL DEFAULT false,
    unresolved boolean NOT NULL DEFAULT false,
    key_trusted boolean NOT NULL DEFAULT true,
    in_doubt boolean NOT NULL DEFAULT false,
    live boolean NOT NULL DEFAULT true,
    wanted boolean NOT NULL DEFAULT true,
    state text NOT NULL,
    lane text NOT NULL,
    owner uuid,
    request_digest text,
    handle jsonb,
    read_set jsonb,
    CONSTRAINT ready_at_means_queued CHECK ((ready_at IS NOT NULL) = (state = 'queued')),
    CONSTRAINT hold_at_means_held CHECK ((hold_at IS NOT NULL) = (state = 'held')),
    CONSTRAINT ack_by_means_open_attempt
        CHECK ((ack_by IS NOT NULL) = (state IN ('executing', 'awaiting_ack'))),
    CONSTRAINT indeterminate_is_watched
        CHECK (state <> 'indeterminate' OR probe_at IS NOT NULL OR parked_at IS NOT NULL),
    CONSTRAINT out_means_marked CHECK (state NOT IN ('awaiting_ack', 'indeterminate') OR sends > 0),
    CONSTRAINT settled_has_observation CHECK (
        state NOT IN ('committed', 'failed', 'cancelled', 'compensated')
        OR observation_id IS NOT NULL),
    CONSTRAINT bound_is_settled CHECK (
        bound_at IS NULL OR state IN ('committed', 'failed', 'cancelled', 'compensated'))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX intent_state_ready ON {schema}.intent_state (lane, ready_at)
    WHERE ready_at IS NOT NULL;
CREATE INDEX intent_state_hold ON {schema}.intent_state (hold_at) WHERE hold_at IS NOT NULL;
CREATE INDEX intent_state_probe ON {schema}.intent_state (probe_at) WHERE probe_at IS NOT NULL;
CREATE INDEX intent_state_parked ON {schema}.intent_state (parked_at) WHERE parked_at IS NOT NULL;
CREATE INDEX intent_state_withdraw ON {schema}.intent_state (withdraw_at)
    WHERE withdraw_at IS NOT NULL;
CREATE INDEX intent_state_undo ON {schema}.intent_state (undo) WHERE undo IS NOT NULL;
-- Few rows ever have one open; hold_pass and the list of unknowns look here.
CREATE INDEX intent_state_diverged ON {schema}.intent_state (diverged_at)
    WHERE diverged_at IS NOT NULL;

-- The reaper's way to open attempts and the consumer's way to settled rows: one row per batch.
CREATE TABLE {schema}.claim_batch (
    batch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner uuid NOT NULL,
    seqs bigint[] NOT NULL,
    created_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE {schema}.settled_batch (
    batch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage text NOT NULL CHECK (stage IN ('settled', 'bound')),
    seqs bigint[] NOT NULL,
    due_at timestamptz NOT NULL,
    tries integer NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.observation (
    observation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq bigint NOT NULL,
    fence bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('attempt', 'evidence', 'probe', 'statement', 'order')),
    number integer NOT NULL,
    outcome text NOT NULL,
    ref text,
    document jsonb NOT NULL,
    actor text NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (seq, fence, kind, number)
);

-- Append-only. seq is null for a refused put: its row may never have been committed.
CREATE TABLE {schema}.event (
    event_id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL,
    seq bigint,
    subject text,
    name text NOT NULL,
    from_state text,
    to_state text,
    actor text NOT NULL,
    actor_name text,
    fence bigint,
    reason text,
    detail jsonb,
    PRIMARY KEY (event_id, at)
) PARTITION BY RANGE (at);
CREATE INDEX event_seq ON {schema}.event (seq, event_id);
CREATE TABLE {schema}.event_rest PARTITION OF {schema}.event DEFAULT;
CREATE TRIGGER event_is_append_only BEFORE UPDATE ON {schema}.event
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();

CREATE TABLE {schema}.worker (
    worker_id uuid PRIMARY KEY,
    role text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    tools text[] NOT NULL,
    lanes text[] NOT NULL,
    started_at timestamptz NOT NULL,
    beat_at timestamptz NOT NULL,
    stopped_at timestamptz
) WITH (fillfactor = 50);

CREATE TABLE {schema}.gate (
    seq bigint PRIMARY KEY,
    opened_at timestamptz NOT NULL,
    clock_started_at timestamptz,
    decision text NOT NULL DEFAULT 'open' CHECK (decision IN ('open', 'approved', 'rejected')),
    fingerprint text NOT NULL,
    policy text,
    decided_at timestamptz,
    actor text,
    reason text
);
CREATE INDEX gate_open ON {schema}.gate (clock_started_at)
    WHERE decision = 'open' AND clock_started_at IS NOT NULL;
CREATE TABLE {schema}.paused (
    tool text PRIMARY KEY,
    actor text NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE TABLE {schema}.domain (
    namespace text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);
