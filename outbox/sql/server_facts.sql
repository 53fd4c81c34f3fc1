-- purpose: what doctor asks the server about itself; needs no schema of ackbox
-- edges: none
-- zero rows: never
SELECT current_setting('server_version_num')::integer AS version_number,
       current_setting('server_version') AS version,
       current_user::text AS role,
       statement_timestamp() AS now,
       pg_backend_pid() AS backend,
       pg_is_in_recovery() AS in_recovery,
       current_setting('transaction_read_only') AS read_only,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_standby_names') AS synchronous_standby_names,
       (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup')
           AS standbys,
       current_setting('statement_timeout') AS statement_timeout,
       current_setting('lock_timeout') AS lock_timeout,
       current_setting('idle_in_transaction_session_timeout') AS idle_in_transaction,
       coalesce(current_setting('idle_session_timeout', true), '0') AS idle_session,
       coalesce(current_setting('transaction_timeout', true), '0') AS transaction_limit,
       (SELECT min(allowed) FROM (
             SELECT current_setting('max_connections')::integer
                    - current_setting('superuser_reserved_connections')::integer
                    - coalesce(current_setting('reserved_connections', true), '0')::integer
             UNION ALL SELECT d.datconnlimit FROM pg_database d
                        WHERE d.datname = current_database() AND d.datconnlimit >= 0
             UNION ALL SELECT r.rolconnlimit FROM pg_roles r
                        WHERE r.rolname = current_user AND r.rolconnlimit >= 0
             ) limits (allowed)) AS connections_allowed
