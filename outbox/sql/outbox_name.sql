-- purpose: whose schema this is, and since when, which tells two outboxes of one name apart
-- edges: none
-- zero rows: a schema that was migrated half by hand
SELECT name, created_at FROM {schema}.outbox
