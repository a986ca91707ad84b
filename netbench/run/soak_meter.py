"""The meter soak alone on this machine: how busy each CPU is, from the first moment on, whether a
load runs already or not; and whether what it takes for granted holds on a host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from netbench.engine.binding import Edge
from netbench.engine.catalogue import Catalogue
from netbench.engine.worker import Outcome, Worker
from netbench.read.metrics import SOAK
from netbench.read.soak import Idle, Soaked, added, busy, idle_of
from netbench.run.single_meter import MeterReading, check_seconds, observe, own_worker, reading_of

SLICES = 20  # of a window, as a rule
SLICE_NS = (10_000_000, 100_000_000)  # a slice is so long at least, and at most
COUNTERS = (  # of a Soaked, behind the time
    "cpu_taken_ns",
    "cpu_switched_ns",
    "cpu_stalled_ns",
    "cpu_quanta",
    "cpu_worked_ns",
    "cpu_stolen_ns",
)
FILES = {
    "cgroup": "/proc/self/cgroup",
    "controllers": "/sys/fs/cgroup/cgroup.subtree_control",
    "weight": "/sys/fs/cgroup/cpu.weight",  # which the root of all cgroups has not
    "smt": "/sys/devices/system/cpu/smt/active",
}
Doubt = tuple[str, str]
"""What does not hold, and what to do."""


@dataclass(frozen=True)
class CpuLoad:
    """One CPU: `busy` as a share of 1, `slow_down` as the share by which quanta took longer than
    on an idle CPU (None where that is not known), `stolen` as the share of 1 that the hypervisor
    took, which `busy` is without.
    """

    cpu: int
    busy: float
    slow_down: float | None
    stolen: float


@dataclass(frozen=True)
class SoakReading(MeterReading):
    """`per_cpu` has each CPU that has a soaker. `idle_share`: what an idle CPU loses, the mean over
    them; `idle_from`: `window`, the quietest parts of this window; `none`: there was no such part,
    and 0 is used. `doubts`: what the meter takes for granted and does not hold here.
    """

    per_cpu: list[CpuLoad]
    idle_share: float
    idle_from: str
    doubts: list[str]


def read_soak(seconds: float) -> SoakReading:
    """One window of all CPUs. Errors: as read_meter."""
    check_seconds(seconds)
    with own_worker() as worker:
        return read_window(worker, seconds)


def read_window(worker: Worker, seconds: float) -> SoakReading:
    """One window. Errors: those of a worker."""
    low, high = SLICE_NS
    sample = min(max(int(seconds * 1e9) // SLICES, low), high)
    outcome = observe(worker, SOAK, seconds, {"sample": sample, "footprint": 0})
    slices = _slices(outcome, worker.catalogue)
    idle = idle_of(slices)
    return SoakReading(
        **vars(reading_of(worker, SOAK, outcome)),
        per_cpu=[_load(cpu, added(parts), idle.get(cpu)) for cpu, parts in slices.items()],
        idle_share=round(fmean(one.share for one in idle.values()), 6) if idle else 0.0,
        doubts=[what for what, _ in doubts(worker)],
        idle_from="window" if idle else "none",
    )


def _load(cpu: int, soaked: Soaked, idle: Idle | None) -> CpuLoad:
    share = busy(soaked.share, idle.share if idle else 0.0, soaked.stolen_share)
    slower = soaked.quantum / idle.quantum - 1 if idle else math.nan
    return CpuLoad(
        cpu,
        round(min(max(share, 0.0), 1.0), 6),
        None if math.isnan(slower) else round(slower, 4),
        round(soaked.stolen_share, 6),
    )


def _slices(outcome: Outcome, catalogue: Catalogue) -> dict[int, list[Soaked]]:
    """What was counted from each sample to the next, by CPU; CPUs without a soaker are left out."""
    at_edges = (one for one in outcome.result if one.edge in (Edge.OPEN, Edge.CLOSE))
    by_time: dict[int, dict[str, Sequence[int | None]]] = {}
    for vector in (*at_edges, *outcome.samples):
        row = catalogue.rows[vector.row]
        if row.owner == SOAK and row.per == "cpu":
            by_time.setdefault(vector.ns, {})[row.name] = vector.numbers
    moments = sorted(by_time.items())
    slices: dict[int, list[Soaked]] = {}
    for cpu in range(len(moments[0][1][COUNTERS[0]])):
        rows = [(ns, [counts[name][cpu] for name in COUNTERS]) for ns, counts in moments]
        parts = [
            Soaked(then - now, *_differences(before, after))
            for (now, before), (then, after) in pairwise(rows)
            if None not in (*before, *after) and then > now
        ]
        if len(parts) == len(moments) - 1:
            slices[cpu] = parts
    return slices


def _differences(before: Sequence[int | None], after: Sequence[int | None]) -> Iterator[int]:
    return (b - a for a, b in zip(before, after, strict=True) if a is not None and b is not None)


def doubts(worker: Worker) -> Iterator[Doubt]:
    """What soak takes for granted and does not hold on a worker's host: that soakers get only what
    nobody else wants, and that what they lose was taken by a load. Errors: those of a worker.
    """
    answers = worker.ask([("file", (path,)) for path in FILES.values()])
    texts = (answer.strip() if isinstance(answer, str) else "" for answer in answers)
    yield from of_texts(dict(zip(FILES, texts, strict=True)))


def of_texts(texts: Mapping[str, str]) -> Iterator[Doubt]:
    """Of what the FILES say; "" for one that is not there."""
    group = _weighted_group(texts["cgroup"], texts["controllers"])
    if group := group or (texts["weight"] and "/ of a namespace of its own, as of a container"):
        yield (
            f"the soakers are in the cgroup {group}, and SCHED_IDLE holds only within a cgroup: a"
            " load in another one is slowed by them, and looks smaller",
            "run the load and netbench in one cgroup, or boot without the cpu controller",
        )
    if texts["smt"] == "1":
        yield (
            "SMT is on: a soaker slows the load on its core's other thread, and the load the"
            " soaker (slow_down), which `busy` does not count",
            "turn SMT off, or compare with a run without soak",
        )


def _weighted_group(cgroup: str, controllers: str) -> str:
    """The cgroup whose weight stands between the soakers and other groups; "" where none does.
    cgroups(7): a line is ID:CONTROLLERS:PATH, of version 2 0::PATH.
    """
    for line in cgroup.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        weighs = "cpu" in names.split(",") if names else "cpu" in controllers.split()
        if weighs and path not in ("", "/"):
            return path
    return ""
