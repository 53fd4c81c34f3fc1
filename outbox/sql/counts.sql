-- purpose: how many rows stand in each state, and how many of them wait for a person
-- edges: none
-- zero rows: the outbox is empty
SELECT s.state, count(*) AS number, count(s.parked_at) AS parked,
       count(s.diverged_at) AS diverged
  FROM {schema}.intent_state s
 GROUP BY s.state
 ORDER BY s.state
