-- purpose: forget what has been told, or is not to be told any more
-- edges: none
-- zero rows: the lease had passed, and another consumer took it
DELETE FROM {schema}.to_tell t WHERE t.tell_id = :tell_id AND t.tries = :tries
RETURNING t.tell_id
