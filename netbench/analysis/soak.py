"""What soakers counted: how busy CPUs were, and how much slower than alone the soakers worked.

A soaker is interrupted on an idle CPU too: by the clock's tick, by the hypervisor, by what else a
kernel does. That share of the time, the idle share, is none of a load's:

    busy = (taken - idle) / (1 - idle)

because what interrupts a soaker interrupts a load likewise, and is counted within the load's time
then. All shares are fractions of 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles

import numpy as np

from netbench.analysis.counters import Number
from netbench.record import Counters, SideCounters

SOAK = "soak"
COUNTERS = ("taken_ns", "switched_ns", "quanta", "worked_ns")
ON_CPU_LEAST = 0.002  # of a slice, for the soaker to have seen anything of its CPU
SLICES_LEAST = 4
BURST = 0.02  # more than the quietest slices by this: interrupts of a load
LOADED = 0.01  # interrupted so much more than usual: likewise


@dataclass(frozen=True)
class Soaked:
    """Counted between two moments, on one CPU or added up over several: all but `quanta` in ns.

    `elapsed`: time that was watched; `taken`: by whatever else ran; `switched`: of it, in gaps in
    which another process ran; `worked`: in quanta.
    """

    elapsed: int
    taken: int
    switched: int
    quanta: int
    worked: int

    @property
    def share(self) -> float:
        """What was taken, of the time."""
        return self.taken / self.elapsed

    @property
    def on_cpu(self) -> int:
        """The time in which no other process ran instead of the soaker."""
        return self.elapsed - self.switched

    @property
    def interrupted(self) -> float:
        """What interrupts and the hypervisor took, of the time in which no other process ran."""
        return max(0, self.taken - self.switched) / self.on_cpu if self.on_cpu > 0 else 0.0

    @property
    def quantum(self) -> float | None:
        """The mean length of a quantum, in ns; None without any."""
        return self.worked / self.quanta if self.quanta > 0 else None


def added(parts: Iterable[Soaked]) -> Soaked:
    """All parts together."""
    sums = [sum(numbers) for numbers in zip(*(_numbers(part) for part in parts), strict=True)]
    return Soaked(*sums) if sums else Soaked(0, 0, 0, 0, 0)


def _numbers(part: Soaked) -> tuple[int, int, int, int, int]:
    return part.elapsed, part.taken, part.switched, part.quanta, part.worked


def busy(share: float, idle: float) -> float:
    """The share of a CPU that a load used, of what was taken in all and of what an idle CPU loses.
    Around 0 it may be below.
    """
    return (share - idle) / (1 - idle)


def counted(counters: Counters, watched_ns: tuple[int, int]) -> Soaked | None:
    """What a record's counters of soak say of all CPUs together in a window, or in the idle one
    with the prefix `idle_`; None where one is missing, or a soaker ended.
    """
    try:
        edges = [counters[name] for name in COUNTERS]
        cpus = counters["cpus"]
    except KeyError:
        return None
    elapsed = watched_ns[1] - watched_ns[0]
    taken, switched, quanta, worked = (closing - opening for opening, closing in edges)
    ended = cpus[0] != cpus[1] or cpus[0] < 1
    if ended or elapsed <= 0 or min(taken, quanta, worked) < 0:
        return None
    return Soaked(elapsed * cpus[0], taken, switched, quanta, worked)


def idle_counted(counters: Counters) -> Soaked | None:
    """What a record says of the idle window before it; None where it has none."""
    edges = counters.get("idle_time_ns")
    of_idle = {
        name.removeprefix("idle_"): value
        for name, value in counters.items()
        if name.startswith("idle_")
    }
    return counted(of_idle, (edges[0], edges[1])) if edges else None


def cpus_busy(side: SideCounters) -> Number | None:
    """CPUs that were busy on a host by its soakers, as a record has it; None without an idle
    window: what an idle CPU loses is not known then. Other processes that ran in the idle window
    are not idle: what they take counts in every run, as with other meters of a whole host.
    """
    return _of_each(side, _cpus_busy)


def _cpus_busy(counters: Counters, watched_ns: tuple[int, int]) -> float | None:
    soaked, idle = counted(counters, watched_ns), idle_counted(counters)
    if soaked is None or idle is None or idle.on_cpu < ON_CPU_LEAST * idle.elapsed:
        return None
    cpus = soaked.elapsed / (watched_ns[1] - watched_ns[0])
    return cpus * busy(soaked.share, idle.interrupted)


def slower(side: SideCounters) -> Number | None:
    """The slow-down on a host, as a record has it; None where it is not known."""
    return _of_each(side, _slower)


def _slower(counters: Counters, watched_ns: tuple[int, int]) -> float | None:
    soaked, idle = counted(counters, watched_ns), idle_counted(counters)
    return slow_down(soaked.quantum, idle.quantum) if soaked and idle else None


def _of_each(
    side: SideCounters, of_run: Callable[[Counters, tuple[int, int]], float | None]
) -> Number | None:
    """What a function says of a run, or of each of several (analysis/counters.py)."""
    counters, watched = side.meters.get(SOAK), side.time_ns
    if counters is None or watched is None:
        return None
    if not isinstance(watched[0], np.ndarray):
        return of_run(counters, watched)
    names, edges = list(counters), [watched, *counters.values()]
    columns = [[edge.tolist() for edge in both] for both in edges]
    runs = zip(*(zip(*both, strict=True) for both in columns), strict=True)
    values = (of_run(dict(zip(names, rest, strict=True)), times) for times, *rest in runs)
    return np.array([math.nan if value is None else value for value in values])


def slow_down(quantum: float | None, alone: float | None) -> float | None:
    """How much longer than on an idle CPU a quantum took: 0.1 is 10%; None where one of them is
    not known.
    """
    return None if quantum is None or alone is None else quantum / alone - 1


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
    least = min((found.share for found in seen.values()), default=0.0)
    idle: dict[int, Idle] = {}
    for cpu in slices:
        found, before = seen.get(cpu), stored.get(cpu)
        usual = before.interrupted if before else least
        if found and found.share <= usual + LOADED:
            background = before.switched / before.elapsed if before else 0.0
            quantum = before.quantum if before else found.quantum
            idle[cpu] = Idle(found.share + background, quantum, "window")
        elif before:
            idle[cpu] = Idle(before.share, before.quantum, "stored")
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
    return Soaked(part.on_cpu, taken, 0, part.quanta, part.worked)
