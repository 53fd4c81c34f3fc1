-- purpose: the callback raised, or what it waits for cannot be told yet: try again after a while
-- edges: none
-- zero rows: the lease had passed, and another consumer took it
UPDATE {schema}.to_tell t
   SET due_at = {schema}.clock_now() + make_interval(secs => :delay_seconds)
 WHERE t.tell_id = :tell_id AND t.tries = :tries
RETURNING t.tell_id
