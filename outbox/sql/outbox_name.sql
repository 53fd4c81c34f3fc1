-- purpose: whose schema this is
-- edges: none
-- zero rows: a schema that was migrated half by hand
SELECT name FROM {schema}.outbox
