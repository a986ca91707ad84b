"""Who paid: which share of the CPU time of both hosts was taken on the CPU that the sender's flows
are pinned to, on the receiver's, and on all others.

A CPU's time is that of the processes on it and of the interrupts that ran there, for whomever: the
kernel hands what arrives to any CPU. So it can be told where each side has a CPU of its own alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from netbench.read.counters import Number, delta, where, window_seconds
from netbench.read.soak import SOAK, pinned_busy
from netbench.result.record import SIDES, SideCounters, SideName

METERS = ("cpuidle", SOAK, "procstat")  # the better first


def who_paid(
    sides: Mapping[SideName, SideCounters],
    ticks: Mapping[str, int],
    shared: bool,
    busy: Mapping[str, Number],
) -> Iterator[tuple[str, Number]]:
    """Name and value of the three shares of a run, or of several, by the first of METERS that tells
    them; none where none does. `busy`: metrics, with CPUs busy in all as `system_cpu.METER`.
    """
    for meter in METERS:
        total = busy.get(f"system_cpu.{meter}")
        own = [_busy(meter, sides["sender"], ticks, "pinned")]
        own.append(
            _busy(meter, sides["sender"], ticks, "peer")
            if shared
            else _busy(meter, sides["receiver"], ticks, "pinned")
        )
        positive = None if total is None else where(total > 0, total)
        if positive is None or own[0] is None or own[1] is None:
            continue
        for who, one in zip(SIDES, own, strict=True):
            yield f"{who}_paid", one / positive
        yield "others_paid", np.round((total - own[0] - own[1]) / positive, 9) + 0.0  # no -0.0
        return


def _busy(meter: str, side: SideCounters, ticks: Mapping[str, int], which: str) -> Number | None:
    """How many CPUs were busy of those that one side's flows are pinned to. `which`: `pinned`, this
    side's, or `peer`, the other side's.
    """
    if meter == SOAK:
        return pinned_busy(side, which)
    name, a_second = ("idle_ns", 1e9) if meter == "cpuidle" else ("idle", ticks.get(side.host))
    window, cpus = window_seconds(side), side.meters.get(meter, {}).get(f"{which}_cpus")
    if window is None or not a_second:
        return None
    if (spent := delta(side, meter, f"{which}_busy")) is not None:  # of an earlier version
        return spent / a_second / window
    idle = delta(side, meter, f"{which}_{name}")
    return None if idle is None or not cpus else cpus[0] - idle / a_second / window
