"""What soakers counted: how busy CPUs were, and how much slower than alone the soakers worked.

A soaker is interrupted on an idle CPU too: by the clock's tick, by the hypervisor, by what else a
kernel does. That share of the time, the idle share, is none of a load's:

    busy = (taken - idle) / (1 - idle)

because what interrupts a soaker interrupts a load likewise, and is counted within the load's time
then. What a hypervisor takes for other guests is none of a load's either: `taken` is without it,
and idle is a share of what it leaves. All shares are fractions of 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from statistics import quantiles
from typing import ClassVar, NamedTuple

import numpy as np

from netbench.read.counters import Number, delta, either, steady, where
from netbench.read.metrics import SOAK, SOAK_COUNTERS
from netbench.result.record import SideCounters

ON_CPU_LEAST = 0.002  # of a slice, for the soaker to have seen anything of its CPU
SLICES_LEAST = 4
BURST = 0.02  # more than the quietest slices by this: interrupts of a load
LOADED = 0.01  # interrupted so much more than the quietest CPU: likewise
TICK_NS = 10_000_000  # of /proc/stat, for users: 100 a second on every machine (time(7))


@dataclass(frozen=True)
class Soaked:
    """Counted between two moments, on one CPU or added up over several: all but `quanta` in ns.

    `elapsed`: time that was watched; `taken`: by whatever else ran; `switched`: of it, in gaps in
    which another process ran; `stalled`: of it, in gaps in which none ran and the CPU stood still;
    `worked`: in quanta; `stolen`: by the hypervisor, by /proc/stat.
    """

    elapsed: Number
    taken: Number
    switched: Number
    stalled: Number
    quanta: Number
    worked: Number
    stolen: Number
    cpus: ClassVar[Number] = 1

    @property
    def stolen_ns(self) -> Number:
        """The time that the hypervisor took. Soakers see it to the microsecond (`stalled`), but not
        while other processes run (`switched`): of that time they have the share of what /proc/stat
        counts. Its ticks are the bounds of the whole.
        """
        seen = self.stalled + self.stolen * (self.switched / self.elapsed)
        tick = TICK_NS * self.cpus
        return np.clip(seen, np.maximum(0, self.stolen - tick), self.stolen + tick)

    @property
    def stolen_share(self) -> Number:
        """What the hypervisor took, of the time."""
        return self.stolen_ns / self.elapsed

    @property
    def share(self) -> Number:
        """What all others took, of the time."""
        return (self.taken - self.stolen_ns) / self.elapsed

    @property
    def on_cpu(self) -> Number:
        """The time in which no other process ran instead of the soaker."""
        return self.elapsed - self.switched

    @property
    def interrupted(self) -> Number:
        """What interrupts took of the time in which nothing else ran; 0 where there was none."""
        left, taken = self.on_cpu - self.stalled, self.taken - self.switched - self.stalled
        return either(np.maximum(0, taken) / where(left > 0, left), where(left <= 0, 0.0 * taken))

    @property
    def quantum(self) -> Number:
        """The mean length of a quantum, in ns; NaN without any."""
        return self.worked / where(self.quanta > 0, self.quanta)


def added(parts: Iterable[Soaked]) -> Soaked:
    """All parts together."""
    sums = [sum(numbers) for numbers in zip(*map(astuple, parts), strict=True)]
    return Soaked(*sums) if sums else Soaked(0, 0, 0, 0, 0, 0, 0)


def busy(share: Number, idle: Number, stolen: Number) -> Number:
    """The share of a CPU that a load used: of what was taken in all but by the hypervisor, what an
    idle CPU loses, and what the hypervisor took. Around 0 it may be below.
    """
    return (share - idle * (1 - stolen)) / (1 - idle)


@dataclass(frozen=True)
class HostWindow(Soaked):
    """What a record says of all CPUs of a host together; in the record of several runs, arrays."""

    cpus: Number  # type: ignore[misc]


def window_of(side: SideCounters, prefix: str = "") -> HostWindow:
    """The window of a run, or with the prefix `idle_` the idle one before its block; NaN where a
    counter is missing, or a soaker ended.
    """

    def counted(name: str) -> Number:
        return delta(side, SOAK, f"{prefix}{name}")

    cpus = steady(side, SOAK, f"{prefix}cpus")
    cpus = where(cpus >= 1, cpus)
    opening, closing = side.time_ns or (math.nan, math.nan)
    elapsed = counted("time_ns") if prefix else closing - opening
    elapsed = where(elapsed > 0, elapsed) * cpus
    numbers = [counted(name) for name in SOAK_COUNTERS[:-1]]
    return HostWindow(elapsed, *numbers, cpus)  # type: ignore[call-arg]


def idle_share(side: SideCounters) -> Number:
    """What interrupts took of idle CPUs, in the time of the idle window in which no other process
    ran, nor the hypervisor; NaN where there was none.
    """
    idle = window_of(side, "idle_")
    return where(idle.on_cpu - idle.stalled >= ON_CPU_LEAST * idle.elapsed, idle.interrupted)


def cpus_busy(side: SideCounters) -> Number:
    """CPUs that were busy on a host by its soakers, as a record has it; NaN without an idle window:
    what an idle CPU loses is not known then. Other processes that ran in the idle window are not
    idle: what they take counts in every run, as with other meters of a whole host.
    """
    watched, idle = window_of(side), idle_share(side)
    return watched.cpus * busy(watched.share, where(idle < 1, idle), watched.stolen_share)


def slower(side: SideCounters) -> Number:
    """How much longer than on idle CPUs a quantum took on a host, by a record: 0.1 is 10%."""
    return window_of(side).quantum / window_of(side, "idle_").quantum - 1


class Idle(NamedTuple):
    """What a CPU would lose if idle, and how long a quantum takes then, in ns (or NaN)."""

    share: float
    quantum: Number


def idle_of(slices: Mapping[int, Sequence[Soaked]]) -> dict[int, Idle]:
    """What each CPU would lose if it were idle, from slices of a window in which it was loaded or
    not: by the time in which no other process ran. Where interrupts took much more than on the
    quietest CPU, they are a load's. Empty where processes left nothing of any CPU.
    """
    seen = {cpu: quietest for cpu, parts in slices.items() if (quietest := quiet(parts))}
    least = min((quietest.interrupted for quietest in seen.values()), default=0.0)
    idle: dict[int, Idle] = {}
    for cpu in slices if seen else ():
        quietest = seen.get(cpu)
        own = quietest is not None and quietest.interrupted <= least + LOADED
        share = quietest.interrupted if quietest and own else least
        idle[cpu] = Idle(share, quietest.quantum if quietest else math.nan)
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
