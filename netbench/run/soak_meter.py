"""The meter soak alone on this machine: how busy each CPU is, from the first moment on, whether a
load runs already or not.
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
from netbench.read.soak import SOAK, Idle, Soaked, added, busy, idle_of
from netbench.run import idle_shares
from netbench.run.check_soak import doubts
from netbench.run.single_meter import MeterReading, check_seconds, observe, own_worker, reading_of

SLICES = 20  # of a window, as a rule
SLICE_NS = (10_000_000, 100_000_000)  # a slice is so long at least, and at most
QUIET = 0.01  # of a CPU's time to other processes at most: the CPU counts as idle
KEPT_FROM_NS = 500_000_000  # a window shorter than this tells too little to be kept
COUNTERS = (  # of a Soaked, behind the time
    "cpu_taken_ns",
    "cpu_switched_ns",
    "cpu_stalled_ns",
    "cpu_quanta",
    "cpu_worked_ns",
    "cpu_stolen_ns",
)


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
    them; `idle_from`: `window`, the quietest parts of this window; `stored`, a window earlier in
    this boot; `none`: neither was there, and 0 is used. `doubts`: what the meter takes for granted
    and does not hold here.
    """

    per_cpu: list[CpuLoad]
    idle_share: float
    idle_from: str
    doubts: list[str]


def read_soak(seconds: float, footprint: int = 0) -> SoakReading:
    """Watch all CPUs for some seconds. Errors: as read_meter."""
    check_seconds(seconds)
    with own_worker() as worker:
        return read_window(worker, seconds, footprint)


def watch(seconds: float, footprint: int = 0) -> Iterator[SoakReading]:
    """Window after window of some seconds, without end. Errors: as read_meter."""
    check_seconds(seconds)
    with own_worker() as worker:
        while True:
            yield read_window(worker, seconds, footprint)


def read_window(worker: Worker, seconds: float, footprint: int) -> SoakReading:
    """One window. Errors: those of a worker."""
    low, high = SLICE_NS
    sample = min(max(int(seconds * 1e9) // SLICES, low), high)
    outcome = observe(worker, SOAK, seconds, {"sample": sample, "footprint": footprint})
    slices = _slices(outcome, worker.catalogue)
    boot_id = worker.hello.boot_id
    idle = idle_of(slices, idle_shares.read(boot_id, footprint))
    _keep_quiet(boot_id, footprint, slices)
    return SoakReading(
        **vars(reading_of(worker, SOAK, outcome)),
        per_cpu=[_load(cpu, added(parts), idle.get(cpu)) for cpu, parts in slices.items()],
        idle_share=round(fmean(one.share for one in idle.values()), 6) if idle else 0.0,
        doubts=[what for what, _ in doubts(worker)],
        idle_from="+".join(sorted({one.origin for one in idle.values()})) or "none",
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


def _keep_quiet(boot_id: str, footprint: int, slices: Mapping[int, Sequence[Soaked]]) -> None:
    """Keep what was counted where all CPUs were idle."""
    whole = {cpu: added(parts) for cpu, parts in slices.items()}
    if whole and all(
        one.elapsed >= KEPT_FROM_NS and one.switched <= QUIET * one.elapsed
        for one in whole.values()
    ):
        idle_shares.keep(boot_id, footprint, whole)


def _slices(outcome: Outcome, catalogue: Catalogue) -> dict[int, list[Soaked]]:
    """What was counted from each sample to the next, by CPU; CPUs without a soaker are left out."""
    moments = sorted(_moments(outcome, catalogue).items())
    cpus = range(len(moments[0][1][COUNTERS[0]]))
    slices: dict[int, list[Soaked]] = {}
    for cpu in cpus:
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


def _moments(outcome: Outcome, catalogue: Catalogue) -> dict[int, dict[str, Sequence[int | None]]]:
    """Counters of each CPU at the window's edges and at the samples between, by time."""
    at_edges = (one for one in outcome.result if one.edge in (Edge.OPEN, Edge.CLOSE))
    moments: dict[int, dict[str, Sequence[int | None]]] = {}
    for vector in (*at_edges, *outcome.samples):
        row = catalogue.rows[vector.row]
        if row.owner == SOAK and row.per == "cpu":
            moments.setdefault(vector.ns, {})[row.name] = vector.numbers
    return moments
