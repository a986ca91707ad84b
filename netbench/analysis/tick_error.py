"""How far off CPU time is that is counted by samples at clock ticks.

At each tick of a CPU the kernel asks what it does, and charges the whole tick to that. In T seconds
there are HZ x T such samples, so the share p of busy time of one CPU has the standard error
sqrt(p (1 - p) / (HZ x T)): that of a binomial share. Work that begins with a timer, and so right
after a tick, is missed altogether; no formula tells how much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from netbench.result_files import HostEntry


def samples_a_second(entries: Iterable[HostEntry]) -> int | None:
    """How often a host's kernel looks at a CPU; None where that is not known, or changed."""
    rates = {entry.known.get("tick_rate") or str(entry.clock_ticks) for entry in entries}
    return int(rates.pop()) if len(rates) == 1 else None


def tick_error(busy: float, cpus: int, hz: int, seconds: float) -> float:
    """Standard error, in CPUs, of `busy` CPUs of a host with so many, in a window of so many
    seconds; at the most, since it takes the work as evenly spread. 0 where no CPU is partly busy.
    """
    share = min(max(busy / cpus, 0.0), 1.0)
    return math.sqrt(cpus * share * (1 - share) / (hz * seconds))
