"""What the console of a host that is booted tells."""

from __future__ import annotations

import re
from collections.abc import Sequence

CONSOLE_LINES = 8
PANIC = "Kernel panic - not syncing"
_DIGITS = re.compile(r"\d+")


def panicked(lines: Sequence[str], stale: Sequence[str]) -> bool:
    """Whether the kernel has panicked since the console ended with `stale`."""
    return any(PANIC in line and line not in stale for line in lines)


def excerpt(lines: Sequence[str]) -> list[str]:
    """The lines around a panic, else the last ones; those that differ in numbers only, once."""
    once = list({_DIGITS.sub("", line): line for line in reversed(lines)}.values())[::-1]
    panic = max((at for at, line in enumerate(once) if PANIC in line), default=None)
    return (
        once[-CONSOLE_LINES:]
        if panic is None
        else once[max(0, panic - CONSOLE_LINES // 2) :][:CONSOLE_LINES]
    )
