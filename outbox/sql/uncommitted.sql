-- purpose: the intents that the asking transaction has put, its savepoints included, and that it
--          has not committed; for tests, since it reads every intent
-- edges: none
-- zero rows: it has put nothing
WITH me AS (
    SELECT CAST(CAST(pg_current_xact_id_if_assigned() AS text) AS bigint) AS xid
), young AS (
    -- Of the rows that are seen, those written by a transaction numbered from ours on.
    SELECT n.seq, me.xid + mod(CAST(CAST(n.xmin AS text) AS bigint)
               - mod(me.xid, 4294967296) + 4294967296, 4294967296) AS xid, me.xid AS own
      FROM {schema}.intent n CROSS JOIN me
     WHERE me.xid IS NOT NULL
)
SELECT n.seq, n.namespace, n.intent_id, n.generation, n.tool, n.tool_version, n.lane, n.run_id,
       n.step, n.args
  FROM {schema}.intent n JOIN young y ON y.seq = n.seq
 -- A CASE, since a number from before ours would be asked for as one of the future.
 WHERE CASE WHEN y.xid - y.own < 2147483648
            THEN pg_xact_status(CAST(CAST(y.xid AS text) AS xid8)) = 'in progress' END
 ORDER BY n.seq
