"""Meters of CPU against known loads: a busy loop with a duty, started from a session of its own,
whose own thread clock is the truth.
"""

from __future__ import annotations

import bisect
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from netbench.conductor.single_meter import observe, own_worker, reading_of
from netbench.conductor.soak_meter import SoakReading, read_soak
from tools.bench import command
from tools.bench.table import Part, Row

DUTIES = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.99)
WINDOWS = 10
SECONDS = 1.0
CPU = 1  # the load's
MEDIAN, ANY_LEVEL, SPREAD = 0.5, 1.0, 1.0  # points of one CPU
NARROWER = 1 / 3
LOW_LOAD = """\
netbench: 1
name: low-load
verify: off
transfer: {duration: 500ms, warmup: 100ms, rate: 100Mb/s, congestion: cubic}
sweep: {meters: [[rusage, procstat], [rusage, soak]]}
repeat: {min: 15, max: 15, metrics: [throughput]}
"""
FULL_LOAD = """\
netbench: 1
name: full-load
verify: off
transfer: {duration: 500ms, warmup: 100ms, congestion: cubic}
sweep: {meters: [[], [soak]]}
repeat: {min: 15, max: 15, metrics: [throughput]}
compare: {factor: meters, baseline: '[]', margin: 2%}
"""
LOAD = """
import json, os, select, sys, time
cpu, duty, period = int(sys.argv[1]), float(sys.argv[2]), 0.02
os.sched_setaffinity(0, {cpu})
print("ready", flush=True)
marks, begun, turn = [], time.monotonic(), 0
while True:
    end = begun + turn * period + duty * period
    while time.monotonic() < end:
        pass
    marks.append((time.monotonic_ns(), time.thread_time_ns()))
    turn += 1
    left = begun + turn * period - time.monotonic()
    if left > 0:
        time.sleep(left)
    marks.append((time.monotonic_ns(), time.thread_time_ns()))
    if turn % 5 == 0 and select.select([sys.stdin], [], [], 0)[0]:
        break
print(json.dumps(marks))
"""
HOW = (
    f"A busy loop of a known duty, pinned to one CPU and started from a session of its own; its"
    f" thread clock is the truth, read at the window's edges. {WINDOWS} windows of {SECONDS:g} s at"
    f" each of {len(DUTIES)} levels. Errors are in points of one CPU. Plain counting is cyclesoak's"
    " way with the same soakers: quanta done, over those of the first window without load. procstat"
    " is read in windows of its own."
)
NOTES = (
    (
        "Whatever else runs on that CPU counts as error here: the load's clock does not see it, and"
        " the meters do."
    ),
)


@dataclass(frozen=True)
class Errors:
    """Measured less true, of one meter by level, in points."""

    by_level: tuple[tuple[float, ...], ...]

    @property
    def medians(self) -> list[float]:
        """Of the absolute errors, by level."""
        return [statistics.median(map(abs, level)) for level in self.by_level]

    @property
    def median(self) -> float:
        """Of all absolute errors."""
        return statistics.median(abs(error) for level in self.by_level for error in level)

    @property
    def spread(self) -> float:
        """The largest standard deviation within a level."""
        return max(statistics.stdev(level) for level in self.by_level)

    def text(self) -> str:
        return (
            f"median {self.median:.2f}, worst level {max(self.medians):.2f}, sd {self.spread:.2f}"
        )


@contextmanager
def load(duty: float) -> Iterator[list[Sequence[int]]]:
    """A load, for as long as the context lasts; its marks (time, CPU time) are there after it."""
    argv = [sys.executable, "-c", LOAD, str(CPU), str(duty)]
    pipe = subprocess.PIPE
    marks: list[Sequence[int]] = []
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as process:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise RuntimeError("the load did not start")
        try:
            yield marks
        finally:
            marks += json.loads(process.communicate("\n")[0])


def truth(marks: Sequence[Sequence[int]], edges: Sequence[int]) -> float:
    """The load's share of its CPU between two times."""

    def used(ns: int) -> float:
        after = min(max(bisect.bisect([mark[0] for mark in marks], ns), 1), len(marks) - 1)
        (t0, c0), (t1, c1) = marks[after - 1], marks[after]
        return c0 + (c1 - c0) * (ns - t0) / max(1, t1 - t0)

    return (used(edges[1]) - used(edges[0])) / (edges[1] - edges[0])


def measure() -> Part:
    """All of it."""
    soak: list[tuple[float, ...]] = []
    plain: list[tuple[float, ...]] = []
    procstat: list[tuple[float, ...]] = []
    scheduled: list[float] = []
    full = _quanta(read_soak(SECONDS))
    for duty in DUTIES:
        with load(duty) as marks:
            soaked = [read_soak(SECONDS) for _ in range(WINDOWS)]
            ticked = list(_procstat())
        scheduled += [error for reading in soaked for error in _against_scheduler(reading)]
        shares = [truth(marks, reading.time_ns) for reading in soaked]
        busy = [next(one.busy for one in r.per_cpu if one.cpu == CPU) for r in soaked]
        counted = [1 - _quanta(reading) / full for reading in soaked]
        soak.append(_points(busy, shares))
        plain.append(_points(counted, shares))
        procstat.append(
            _points([share for share, _ in ticked], [truth(marks, edges) for _, edges in ticked])
        )
    errors = Errors(tuple(soak))
    rows = [_known_loads(errors, Errors(tuple(plain)), Errors(tuple(procstat)))]
    rows.append(_beside_scheduler(scheduled))
    rows += [
        Row(
            f"duty {duty:.0%}",
            f"{statistics.fmean(level):+.2f}, sd {statistics.stdev(level):.2f}",
            f"plain counting {statistics.fmean(other):+.2f},"
            f" procstat {statistics.fmean(ticks):+.2f}",
            f"median {median:.2f}",
            f"at most {ANY_LEVEL:g}",
            median <= ANY_LEVEL,
        )
        for duty, level, other, ticks, median in zip(
            DUTIES, soak, plain, procstat, errors.medians, strict=True
        )
    ]
    with tempfile.TemporaryDirectory() as name:
        rows += [_low_load(Path(name)), _own_effect(Path(name))]
    return Part("Meters", HOW, tuple(rows), NOTES)


def _known_loads(soak: Errors, plain: Errors, procstat: Errors) -> Row:
    return Row(
        "error on known loads, points of one CPU",
        soak.text(),
        f"plain counting: {plain.text()}; procstat: {procstat.text()}",
        f"median {soak.median:.2f}, sd {soak.spread:.2f}",
        f"median at most {MEDIAN:g}, sd at most {SPREAD:g}",
        soak.median <= MEDIAN and soak.spread <= SPREAD,
    )


def _against_scheduler(reading: SoakReading) -> Iterator[float]:
    """Busy, less what the scheduler gave to others than the soaker, of each CPU in points. It holds
    for whatever else runs: a CPU with a soaker is never idle.
    """
    opening, closing = (line["soak"]["cpu_used_ns"] for line in reading.cpus)
    elapsed = reading.time_ns[1] - reading.time_ns[0]
    for one in reading.per_cpu:
        others = 1 - (closing[one.cpu] - opening[one.cpu]) / elapsed
        yield 100 * (one.busy - others)


def _beside_scheduler(errors: Sequence[float]) -> Row:
    return Row(
        "busy, less the time that the scheduler gave to other processes, both CPUs, all windows",
        f"median {statistics.median(map(abs, errors)):.2f}, sd {statistics.stdev(errors):.2f}",
        "the kernel's account of the soakers' CPU time",
        f"{statistics.fmean(errors):+.2f} points",
        "",
        None,
    )


def _points(measured: Sequence[float], true: Sequence[float]) -> tuple[float, ...]:
    return tuple(100 * (one - other) for one, other in zip(measured, true, strict=True))


def _quanta(reading: SoakReading) -> float:
    """Quanta a second of the load's CPU."""
    opening, closing = (line["soak"]["cpu_quanta"][CPU] for line in reading.cpus)
    return float(closing - opening) / (reading.time_ns[1] - reading.time_ns[0]) * 1e9


def _procstat() -> Iterator[tuple[float, list[int]]]:
    """How busy the load's CPU was in windows of procstat, and their edges."""
    with own_worker() as worker:
        for _ in range(WINDOWS):
            reading = reading_of(worker, "procstat", observe(worker, "procstat", SECONDS))
            opening, closing = (line["procstat"] for line in reading.cpus)
            busy = sum(
                closing[f"cpu_{state}"][CPU] - opening[f"cpu_{state}"][CPU]
                for state in ("user", "nice", "system", "irq", "softirq")
            )
            seconds = (reading.time_ns[1] - reading.time_ns[0]) / 1e9
            yield busy / reading.clock_ticks / seconds, reading.time_ns


def _low_load(folder: Path) -> Row:
    """Interleaved runs at 100 Mb/s, with one meter or the other."""
    cells = command.run(LOW_LOAD, folder).results.cells
    cpu = cells[cells["metric"] == "system_cpu"].set_index("meters")
    widths = (cpu["high"] - cpu["low"]) / 2
    ticks, soak = (widths[name] for name in cpu.index)
    return Row(
        "interval of system_cpu at 100 Mb/s, 15 runs of 500 ms each",
        f"soak: {_mean(cpu, 1)}",
        f"procstat: {_mean(cpu, 0)}",
        f"{soak / ticks:.2f} times as wide",
        "at most 1/3",
        bool(soak <= NARROWER * ticks),
    )


def _mean(cpu: Any, place: int) -> str:
    row = cpu.iloc[place]
    return f"{row['mean']:.4f} ±{(row['high'] - row['low']) / 2:.4f} CPUs"


def _own_effect(folder: Path) -> Row:
    """Throughput with soak over throughput without any meter."""
    ran = command.run(yaml.safe_dump(yaml.safe_load(FULL_LOAD)), folder)
    cells = ran.results.cells
    rates = cells[cells["metric"] == "throughput"]["mean"]
    return Row(
        "throughput beside soakers",
        f"{rates.iloc[1]:.2f} Gb/s",
        f"without meters: {rates.iloc[0]:.2f} Gb/s",
        f"{rates.iloc[1] / rates.iloc[0] - 1:+.1%}",
        "",
        None,
    )
