"""Views in SQL over the tables of results: what a host did over time. Hosts are told by their names
in the campaigns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netbench.facts.registry import FACTS

VARYING = ", ".join(f"'{fact.name}'" for fact in FACTS if fact.varies)
"""Facts that differ each time that they are read."""
ROLES = """\
SELECT split_part(pair, '>', 1) AS host, 'sender' AS role, split_part(pair, '>', 2) AS peer, *
FROM {table}
UNION ALL BY NAME
SELECT split_part(pair, '>', 2) AS host, 'receiver' AS role, split_part(pair, '>', 1) AS peer, *
FROM {table}"""


@dataclass(frozen=True)
class View:
    """`needs`: the tables and views that its SELECT reads."""

    needs: tuple[str, ...]
    select: str


VIEWS: Mapping[str, View] = {
    "host_runs": View(("runs",), ROLES.format(table="runs")),
    "host_history": View(
        ("runs", "cells"),
        f"""\
WITH began AS (SELECT campaign, result, min(started) AS began FROM runs GROUP BY ALL),
of_hosts AS ({ROLES.format(table="cells")})
SELECT host, role, peer, began, of_hosts.*  EXCLUDE (host, role, peer),
  lag(mean) OVER earlier AS before, mean / lag(mean) OVER earlier - 1 AS change
FROM of_hosts JOIN began USING (campaign, result)
WINDOW earlier AS (PARTITION BY host, role, pair, campaign, cell, metric ORDER BY began, result)
ORDER BY host, role, campaign, cell, metric, began""",
    ),
    "host_changes": View(
        ("runs", "facts"),
        f"""\
WITH began AS (SELECT campaign, result, min(started) AS began FROM runs GROUP BY ALL),
known AS (
  SELECT host, fact, began, campaign, result, boot, value,
    lag(value) OVER earlier AS before, row_number() OVER earlier AS number
  FROM facts JOIN began USING (campaign, result)
  WHERE value IS NOT NULL AND fact NOT IN ({VARYING})
  WINDOW earlier AS (PARTITION BY host, fact ORDER BY began, result, boot)
)
SELECT host, fact, began, campaign, result, boot, before, value
FROM known WHERE number > 1 AND value IS DISTINCT FROM before
ORDER BY host, began, fact""",
    ),
}
"""By name. A view is made when a query names it."""


def create(name: str) -> str:
    """The statement that makes a view."""
    return f"CREATE OR REPLACE VIEW {name} AS {VIEWS[name].select}"
