"""Names that a campaign file may hold, and so the plan and the records of a result: which words, as
regular expressions that Python, JSON Schema and pydantic read alike.
"""

from __future__ import annotations

import os
import re
import shlex
import sys


def name_pattern(most: int) -> str:
    """A regular expression of names: letters, digits, dots, dashes and underscores."""
    return f"[A-Za-z0-9][A-Za-z0-9._-]{{0,{most - 1}}}"


PROGRAM = "netbench" if os.path.basename(sys.argv[0]) == "netbench" else "python -m netbench"
"""How this program was called, for commands that a message tells to copy."""


WRITTEN, PRINTED = 2, 1
"""Versions of what is written into a result folder, and of what `--json` prints
(docs/reference/formats.md).
"""


def shell_word(path: object) -> str:
    """A path within a command that a message tells to copy."""
    return shlex.quote(str(path))


HOST = name_pattern(63)  # characters, as of a label in DNS (RFC 1035)
CAMPAIGN_MAX = 100  # characters: with a suffix it is still the name of a folder and of a file
FACTOR = "[A-Za-z][!-~]{0,254}"  # `sysfs.PATH` is the freest
AS_IS = "as_is"  # the level of each setting that is what the host has without it
LINE = r"^[^\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]*$"  # a level
PAIRS_MAX = 100_000  # in all cells of a campaign
RELEASE = "[A-Za-z0-9][A-Za-z0-9._+~-]*"  # as a kernel calls itself
METRIC = "([a-z][a-z0-9_]{0,39}|(lateness_)?p99[.]9)"
CAPTURES_MAX = 64  # metrics that a tool prints: each has its table, its plot, its comparisons
COLUMNS = (
    *("run", "cell", "pair", "block", "boot", "round", "build", "control", "status", "reason"),
    *("engaged", "started", "excluded", "noise", "label", "campaign", "result"),
)
"""Of tables of runs, beside factors and metrics."""
VIEW_COLUMNS = ("host", "role", "peer", "began")
"""Of views over these."""
METRICS = (
    "throughput",
    *(f"{side}_{what}" for what in ("cpu", "demand") for side in ("sender", "receiver", "system")),
)
"""What netbench measures itself and can close cells."""
QUANTILES = ("p50", "p90", "p95", "p99", "p99.9")
REQUEST_METRICS = (
    *("transactions", "offered", "latency", *QUANTILES, "max", "lateness"),
    *(f"lateness_{what}" for what in (*QUANTILES, "max")),
    *(f"service_{what}" for what in ("latency", "p50", "p99")),
)
"""What a run of requests has, beside tools that print metrics of such names."""
OF_SHARES = frozenset(n for n in REQUEST_METRICS if n.rpartition("_")[2] in QUANTILES)
"""Those of them that are quantiles."""
CELL_COLUMNS = ("metric", "unit", "n", "mean", "low", "high", "precision")
"""Of tables of cells, beside factors and what they have in common with runs."""
_SIDE = re.compile("(sender|receiver|system)_")
_MEASURED = frozenset(
    """throughput sent cpu demand request_demand user_cpu kernel_cpu slow_down retransmits
    fsync_time steps interrupts softirqs softirq_time packets link_interrupts
    packets_per_interrupt bytes_per_packet gso_size gso_segments gro_size gro_segments
    cycles_per_byte kernel_cycles_per_byte instructions_per_byte instructions_per_cycle
    cache_misses_per_kib branch_misses_per_kib context_switches migrations page_faults energy
    energy_less_idle power interrupts_per_request""".split()
)
"""The metrics of netbench, without the side that they are of."""


def is_measured(name: str) -> bool:
    """Whether netbench has a metric of that name; SQL's names have no case."""
    return _SIDE.sub("", name.lower(), count=1) in _MEASURED


def is_taken(name: str) -> bool:
    """Whether a table has a column of that name, which nothing of a campaign's own may have."""
    return name.lower() in (*COLUMNS, *CELL_COLUMNS, *VIEW_COLUMNS) or is_measured(name)
