"""Names that a campaign file may hold, and so the plan and the records of a result: which words, as
regular expressions that Python, JSON Schema and pydantic read alike.
"""

from __future__ import annotations

import shlex


def name_pattern(most: int) -> str:
    """A regular expression of names: letters, digits, dots, dashes and underscores."""
    return f"[A-Za-z0-9][A-Za-z0-9._-]{{0,{most - 1}}}"


def shell_word(path: object) -> str:
    """A path within a command that a message tells to copy."""
    return shlex.quote(str(path))


HOST = name_pattern(63)  # characters, as of a label in DNS (RFC 1035)
CAMPAIGN_MAX = 100  # characters: with a suffix it is still the name of a folder and of a file
FACTOR = "[A-Za-z][!-~]{0,254}"  # `sysfs.PATH` is the freest
LINE = r"^[^\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]*$"  # a level
PAIRS_MAX = 100_000  # in all cells of a campaign
RELEASE = "[A-Za-z0-9][A-Za-z0-9._+~-]*"  # as a kernel calls itself
METRIC = "[a-z][a-z0-9_]{0,39}"
COLUMNS = (
    *("run", "cell", "pair", "block", "boot", "round", "build", "control", "status", "reason"),
    *("engaged", "started", "excluded", "noise", "label", "campaign", "result"),
)
"""Of tables of runs, beside factors and metrics."""
METRICS = (
    "throughput",
    *(f"{side}_{what}" for what in ("cpu", "demand") for side in ("sender", "receiver", "system")),
)
"""What netbench measures itself and can close cells."""
