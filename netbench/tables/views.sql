-- Views over the tables of results: what a host did over time. Hosts are told by their names in the
-- campaigns. A view is made when a query names it. VARYING: facts that differ at each reading.

CREATE OR REPLACE VIEW host_runs AS
SELECT split_part(pair, '>', 1) AS host, 'sender' AS role, split_part(pair, '>', 2) AS peer, *
FROM runs
UNION ALL BY NAME
SELECT split_part(pair, '>', 2) AS host, 'receiver' AS role, split_part(pair, '>', 1) AS peer, *
FROM runs;

CREATE OR REPLACE VIEW host_history AS
WITH began AS (SELECT campaign, result, min(started) AS began FROM runs GROUP BY ALL),
of_hosts AS (
  SELECT split_part(pair, '>', 1) AS host, 'sender' AS role, split_part(pair, '>', 2) AS peer, *
  FROM cells
  UNION ALL BY NAME
  SELECT split_part(pair, '>', 2) AS host, 'receiver' AS role, split_part(pair, '>', 1) AS peer, *
  FROM cells
)
SELECT host, role, peer, began, of_hosts.*  EXCLUDE (host, role, peer),
  lag(mean) OVER earlier AS before, mean / lag(mean) OVER earlier - 1 AS change
FROM of_hosts JOIN began USING (campaign, result)
WINDOW earlier AS (PARTITION BY host, role, pair, campaign, cell, metric, unit
  ORDER BY began, result)
ORDER BY host, role, campaign, cell, metric, began;

CREATE OR REPLACE VIEW host_changes AS
WITH began AS (SELECT campaign, result, min(started) AS began FROM runs GROUP BY ALL),
known AS (
  SELECT host, fact, began, campaign, result, boot, value,
    lag(value) OVER earlier AS before, row_number() OVER earlier AS number
  FROM facts JOIN began USING (campaign, result)
  WHERE value IS NOT NULL AND fact NOT IN (VARYING)
  WINDOW earlier AS (PARTITION BY host, fact ORDER BY began, result, boot)
)
SELECT host, fact, began, campaign, result, boot, before, value
FROM known WHERE number > 1 AND value IS DISTINCT FROM before
ORDER BY host, began, fact;
