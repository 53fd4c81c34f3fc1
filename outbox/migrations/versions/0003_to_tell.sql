-- purpose: the work list of on_told callbacks: one row for each event after which something is told
--          that binds nothing. {schema} is the quoted schema name.
-- The trigger writes it in the event's own transaction, whichever version of ackbox that runs. No
-- number has to be compared, so an event that commits late is behind nobody's cursor.
CREATE TABLE {schema}.to_tell (
    tell_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq bigint NOT NULL,
    word text NOT NULL CHECK (word IN ('unknown', 'parked', 'compensated')),
    due_at timestamptz NOT NULL,
    tries integer NOT NULL DEFAULT 0
);
CREATE INDEX to_tell_due ON {schema}.to_tell (due_at, tell_id);

CREATE FUNCTION {schema}.list_to_tell() RETURNS trigger LANGUAGE plpgsql AS $list_to_tell$
BEGIN
    INSERT INTO {schema}.to_tell (seq, word, due_at)
    VALUES (NEW.seq, TG_ARGV[0], {schema}.clock_now());
    RETURN NULL;
END $list_to_tell$;

CREATE TRIGGER event_tells_unknown AFTER INSERT ON {schema}.event
    FOR EACH ROW WHEN (NEW.name = 'divergence'
        OR NEW.to_state = 'indeterminate' AND NEW.from_state IS DISTINCT FROM NEW.to_state)
    EXECUTE FUNCTION {schema}.list_to_tell('unknown');
CREATE TRIGGER event_tells_parked AFTER INSERT ON {schema}.event
    FOR EACH ROW WHEN (NEW.name = 'parked')
    EXECUTE FUNCTION {schema}.list_to_tell('parked');
CREATE TRIGGER event_tells_compensated AFTER INSERT ON {schema}.event
    FOR EACH ROW WHEN (NEW.to_state = 'compensated'
        AND NEW.from_state IS DISTINCT FROM NEW.to_state)
    EXECUTE FUNCTION {schema}.list_to_tell('compensated');
