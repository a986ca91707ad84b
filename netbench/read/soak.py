"""What soakers counted: how busy CPUs were, and how much slower than alone the soakers worked.

A soaker is interrupted on an idle CPU too: by the clock's tick, by the hypervisor, by what else a
kernel does. That share of the time, the idle share, is none of a load's:

    busy = (taken - idle) / (1 - idle)

because what interrupts a soaker interrupts a load likewise, and is counted within the load's time
then. What a hypervisor takes for other guests is none of a load's either: `taken` is without it,
and idle is a share of what it leaves. All shares are fractions of 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from statistics import quantiles
from typing import NamedTuple

import numpy as np

from netbench.read.counters import Number, delta, difference, where, window_seconds
from netbench.result.record import SideCounters

SOAK = "soak"
COUNTERS = (
    "taken_ns",
    "switched_ns",
    "stalled_ns",
    "quanta",
    "worked_ns",
    "stolen_ns",
    "cpus",
)
ON_CPU_LEAST = 0.002  # of a slice, for the soaker to have seen anything of its CPU
SLICES_LEAST = 4
BURST = 0.02  # more than the quietest slices by this: interrupts of a load
LOADED = 0.01  # interrupted so much more than usual: likewise
TICK_NS = 10_000_000  # of /proc/stat, for users: 100 a second on every machine (time(7))


@dataclass(frozen=True)
class Soaked:
    """Counted between two moments, on one CPU or added up over several: all but `quanta` in ns.

    `elapsed`: time that was watched; `taken`: by whatever else ran; `switched`: of it, in gaps in
    which another process ran; `stalled`: of it, in gaps in which none ran and the CPU stood still;
    `worked`: in quanta; `stolen`: by the hypervisor, by /proc/stat.
    """

    elapsed: int
    taken: int
    switched: int
    stalled: int
    quanta: int
    worked: int
    stolen: int

    @property
    def stolen_share(self) -> float:
        """What the hypervisor took, of the time."""
        lost = hypervisor_ns(self.elapsed, self.switched, self.stalled, self.stolen, 1)
        return float(lost) / self.elapsed

    @property
    def share(self) -> float:
        """What all others took, of the time."""
        return self.taken / self.elapsed - self.stolen_share

    @property
    def on_cpu(self) -> int:
        """The time in which no other process ran instead of the soaker."""
        return self.elapsed - self.switched

    @property
    def interrupted(self) -> float:
        """What interrupts took, of the time in which no other process ran, nor the hypervisor."""
        left = self.on_cpu - self.stalled
        return max(0, self.taken - self.switched - self.stalled) / left if left > 0 else 0.0

    @property
    def quantum(self) -> float | None:
        """The mean length of a quantum, in ns; None without any."""
        return self.worked / self.quanta if self.quanta > 0 else None


def added(parts: Iterable[Soaked]) -> Soaked:
    """All parts together."""
    sums = [sum(numbers) for numbers in zip(*map(astuple, parts), strict=True)]
    return Soaked(*sums) if sums else Soaked(0, 0, 0, 0, 0, 0, 0)


def hypervisor_ns(
    elapsed: Number, switched: Number, stalled: Number, stolen: Number, cpus: Number
) -> Number:
    """The time that the hypervisor took of some CPUs, whose `elapsed` is added up. Soakers see it
    to the microsecond (`stalled`), but not while other processes run (`switched`): of that time
    they have the share of what /proc/stat counts. Its ticks are the bounds of the whole.
    """
    seen = stalled + stolen * (switched / elapsed)
    tick = TICK_NS * cpus
    return np.clip(seen, np.maximum(0, stolen - tick), stolen + tick)


def busy(share: Number, idle: Number, stolen: Number) -> Number:
    """The share of a CPU that a load used: of what was taken in all but by the hypervisor, what an
    idle CPU loses, and what the hypervisor took. Around 0 it may be below.
    """
    return (share - idle * (1 - stolen)) / (1 - idle)


class Window(NamedTuple):
    """What a record says of all CPUs of a host together; in the record of several runs, arrays.
    `stolen`: what the hypervisor took.
    """

    cpus: Number
    elapsed: Number  # ns, over all CPUs
    taken: Number
    switched: Number
    stalled: Number
    stolen: Number
    quantum: Number | None


def window_of(side: SideCounters, prefix: str = "") -> Window | None:
    """The window of a run, or with the prefix `idle_` the idle one before its block; None where a
    counter is missing, or a soaker ended.
    """
    counters = side.meters.get(SOAK, {})
    edges = counters.get(f"{prefix}time_ns") if prefix else side.time_ns
    if edges is None or not {f"{prefix}{name}" for name in COUNTERS} <= counters.keys():
        return None
    opening, closing = counters[f"{prefix}cpus"]
    cpus = where((opening == closing) & (opening >= 1), opening)
    elapsed = where(edges[1] > edges[0], edges[1] - edges[0])
    taken = delta(side, SOAK, f"{prefix}taken_ns")
    stolen = delta(side, SOAK, f"{prefix}stolen_ns")
    if cpus is None or elapsed is None or taken is None or stolen is None:
        return None
    worked = delta(side, SOAK, f"{prefix}worked_ns")
    quanta = delta(side, SOAK, f"{prefix}quanta")
    done = None if quanta is None else where(quanta > 0, quanta)
    quantum = None if worked is None or done is None else worked / done
    switched = difference(*counters[f"{prefix}switched_ns"])
    stalled = difference(*counters[f"{prefix}stalled_ns"])
    elapsed = elapsed * cpus
    lost = hypervisor_ns(elapsed, switched, stalled, stolen, cpus)
    return Window(cpus, elapsed, taken, switched, stalled, lost, quantum)


def idle_share(side: SideCounters) -> Number | None:
    """What interrupts took of idle CPUs, in the time of the idle window in which no other process
    ran, nor the hypervisor; None where there was none.
    """
    idle = window_of(side, "idle_")
    if idle is None:
        return None
    left = idle.elapsed - idle.switched - idle.stalled
    alone = where(left >= ON_CPU_LEAST * idle.elapsed, left)
    taken = idle.taken - idle.switched - idle.stalled
    return None if alone is None else np.maximum(0.0, taken) / alone


def cpus_busy(side: SideCounters) -> Number | None:
    """CPUs that were busy on a host by its soakers, as a record has it; None without an idle
    window: what an idle CPU loses is not known then. Other processes that ran in the idle window
    are not idle: what they take counts in every run, as with other meters of a whole host.
    """
    watched, idle = window_of(side), idle_share(side)
    if watched is None or idle is None:
        return None
    share = where(idle < 1, (watched.taken - watched.stolen) / watched.elapsed)
    stolen = watched.stolen / watched.elapsed
    return None if share is None else watched.cpus * busy(share, idle, stolen)


def pinned_busy(side: SideCounters, which: str) -> Number | None:
    """How many CPUs were busy of those that one side's flows are pinned to: `pinned`, this side's,
    or `peer`, the other side's. None where there are none, or what an idle CPU loses (the mean over
    CPUs) is not known.
    """
    elapsed, idle = window_seconds(side), idle_share(side)
    taken = delta(side, SOAK, f"{which}_taken_ns")
    stolen = delta(side, SOAK, f"{which}_stolen_ns")
    count = side.meters.get(SOAK, {}).get(f"{which}_cpus")
    if elapsed is None or taken is None or stolen is None or idle is None or count is None:
        return None
    cpus = where((count[0] == count[1]) & (count[0] >= 1) & (idle < 1), count[0])
    if cpus is None:
        return None
    of_one = 1e-9 / elapsed / cpus
    return cpus * busy((taken - stolen) * of_one, idle, stolen * of_one)


def slower(side: SideCounters) -> Number | None:
    """The slow-down on a host, as a record has it; None where it is not known."""
    watched, idle = window_of(side), window_of(side, "idle_")
    if watched is None or idle is None or watched.quantum is None or idle.quantum is None:
        return None
    return watched.quantum / idle.quantum - 1


def slow_down(quantum: float | None, alone: float | None) -> float | None:
    """How much longer than on an idle CPU a quantum took: 0.1 is 10%; None where one of them is
    not known.
    """
    return None if quantum is None or alone is None else quantum / alone - 1


def quieter(now: Soaked, before: Soaked | None) -> Soaked:
    """A window on an idle CPU, with no more of other processes than there were in an earlier one:
    otherwise a small load that goes on becomes part of what an idle CPU loses.
    """
    if before is None or now.switched * before.elapsed <= before.switched * now.elapsed:
        return now
    least = before.switched * now.elapsed // before.elapsed
    return replace(now, taken=max(0, now.taken - now.switched + least), switched=least)


@dataclass(frozen=True)
class Idle:
    """What a CPU would lose if it were idle, and how long a quantum takes then, in ns; `origin`:
    `window` or `stored`.
    """

    share: float
    quantum: float | None
    origin: str


def idle_of(
    slices: Mapping[int, Sequence[Soaked]], stored: Mapping[int, Soaked]
) -> dict[int, Idle]:
    """What each CPU would lose if it were idle, from slices of a window in which it was loaded or
    not, and from a window earlier in the boot, by CPU. CPUs of which neither tells are left out.

    What interrupts a soaker changes within minutes, so the window itself tells it best: by the time
    in which no other process ran. Where interrupts took much more than they did earlier, or than on
    the quietest CPU, they are a load's. What processes take of an idle CPU, only an earlier window
    can tell.
    """
    seen = {cpu: found for cpu, parts in slices.items() if (found := quiet(parts))}
    least = min((found.interrupted for found in seen.values()), default=0.0)
    idle: dict[int, Idle] = {}
    for cpu in slices:
        found, before = seen.get(cpu), stored.get(cpu)
        usual = before.interrupted if before else least
        background = before.switched / before.elapsed if before else 0.0
        if found and found.interrupted <= usual + LOADED:
            quantum = before.quantum if before else found.quantum
            idle[cpu] = Idle(found.interrupted + background, quantum, "window")
        elif before:
            idle[cpu] = Idle(before.interrupted + background, before.quantum, "stored")
        elif seen:
            quantum = found.quantum if found else None
            idle[cpu] = Idle(least, quantum, "window")
    return idle


def quiet(slices: Sequence[Soaked]) -> Soaked | None:
    """What a CPU lost while no other process ran on it, in the quietest of some slices of time;
    None where other processes left nothing.
    """
    seen = [part for part in slices if part.on_cpu > ON_CPU_LEAST * part.elapsed]
    if len(seen) < SLICES_LEAST:
        return None
    least = quantiles([part.interrupted for part in seen], n=4)[0]
    return added(_alone(part) for part in seen if part.interrupted <= least + BURST)


def _alone(part: Soaked) -> Soaked:
    """A slice without the time of other processes."""
    taken = max(0, part.taken - part.switched)
    return replace(part, elapsed=part.on_cpu, taken=taken, switched=0, stolen=0)
