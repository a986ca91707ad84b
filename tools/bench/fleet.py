"""Many hosts from one controller: each `fleet_*.py` has some of the rows."""

from __future__ import annotations

from tools.bench import fleet_hosts, fleet_outlying, fleet_report, fleet_rounds
from tools.bench.table import Part

ROWS = (fleet_hosts, fleet_rounds, fleet_report, fleet_outlying)
TITLE = "Fleets: many hosts from one controller"
NOTES = (
    (
        "All hosts share two CPUs, one disk and one kernel with the controller: as many real hosts"
        " would answer in parallel."
    ),
)


def measure() -> Part:
    """The rows of every file."""
    rows = [row for module in ROWS for row in module.rows()]
    return Part(TITLE, " ".join(module.HOW for module in ROWS), tuple(rows), NOTES)
