"""The meter soak against known loads: a busy loop with a duty, in a session of its own, whose own
thread clock is the truth.
"""

from __future__ import annotations

import bisect
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from netbench.conductor.single_meter import observe, own_worker, reading_of
from netbench.conductor.soak_meter import SoakReading, read_window
from netbench.engine.worker import Worker
from tools.bench.table import Part, Row

DUTIES = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.99)
WINDOWS = int(os.environ.get("NETBENCH_BENCH_WINDOWS", "10"))  # of each duty
PROCSTAT_WINDOWS = 2
SECONDS = 1.0
CPU = 1  # the load's
MEDIAN, ANY_LEVEL, SPREAD = 0.5, 1.0, 1.0  # points of one CPU
LOAD = """
import json, os, select, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
period = 0.02
for line in iter(sys.stdin.readline, ""):
    duty, begun, turn = float(line), time.monotonic(), 0
    marks = [(time.monotonic_ns(), time.thread_time_ns())]
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        end = begun + turn * period + duty * period
        while time.monotonic() < end:
            pass
        marks.append((time.monotonic_ns(), time.thread_time_ns()))
        turn += 1
        left = begun + turn * period - time.monotonic()
        if left > 0:
            time.sleep(left)
        marks.append((time.monotonic_ns(), time.thread_time_ns()))
    sys.stdin.readline()
    print(json.dumps(marks), flush=True)
"""
HOW = (
    "A busy loop of a known duty, pinned to one CPU, in a session of its own; its thread clock is"
    f" the truth, read at the window's edges. {WINDOWS} windows of {SECONDS:g} s at each of"
    f" {len(DUTIES)} levels, in rounds of all levels in random order; {PROCSTAT_WINDOWS} of these"
    " rounds have a window of procstat at each level too. The bench itself stays off that CPU."
    " Errors are in points of one CPU. Plain"
    " counting is cyclesoak's way with the same soakers: quanta done, over those of the first"
    " window, which has no load."
)
NOTES = (
    (
        "Whatever else runs on that CPU counts as error here: the load's clock does not see it, and"
        " the meters do. So each level stands beside what the scheduler gave to all processes but"
        " the soaker, which knows of the others, and not of interrupts in the soaker's time."
    ),
)


class Load:
    """A busy loop on CPU, in a session of its own. A context manager."""

    def __init__(self) -> None:
        argv, pipe = [sys.executable, "-c", LOAD, str(CPU)], subprocess.PIPE
        self._process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def _say(self, line: str) -> str:
        """A line to it, and its answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the load has no pipes")
        stdin.write(f"{line}\n")
        stdin.flush()
        return stdout.readline()

    @contextmanager
    def at(self, duty: float) -> Iterator[list[Sequence[int]]]:
        """It works, for as long as the context lasts; its marks (time, CPU time) are there after
        it.
        """
        if self._say(str(duty)) != "ready\n":
            raise RuntimeError("the load did not start")
        marks: list[Sequence[int]] = []
        yield marks
        marks += json.loads(self._say(""))


@dataclass(frozen=True)
class Window:
    """Of one level: the load's true share, by the scheduler what all but the soaker got, and what
    soak and plain counting say. Fractions of 1.
    """

    duty: float
    true: float
    scheduled: float
    soak: float
    plain: float


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


def truth(marks: Sequence[Sequence[int]], edges: Sequence[int]) -> float:
    """The load's share of its CPU between two times."""

    def used(ns: int) -> float:
        after = min(max(bisect.bisect([mark[0] for mark in marks], ns), 1), len(marks) - 1)
        (t0, c0), (t1, c1) = marks[after - 1], marks[after]
        return c0 + (c1 - c0) * (ns - t0) / max(1, t1 - t0)

    return (used(edges[1]) - used(edges[0])) / (edges[1] - edges[0])


def measure() -> Part:
    """All of it."""
    order = random.Random(1)
    windows: list[Window] = []
    ticked: list[tuple[float, float]] = []  # duty, error in points
    with Load() as load, own_worker() as worker:
        _leave(CPU)
        full = _quanta(read_window(worker, SECONDS, 0))
        for number in range(WINDOWS):
            for duty in order.sample(DUTIES, len(DUTIES)):
                with load.at(duty) as marks:
                    reading = read_window(worker, SECONDS, 0)
                windows.append(_window(duty, reading, truth(marks, reading.time_ns), full))
                if number < PROCSTAT_WINDOWS:
                    with load.at(duty) as marks:
                        busy, edges = _procstat(worker)
                    ticked.append((duty, 100 * (busy - truth(marks, edges))))
    soak = _errors(windows, lambda one: one.soak - one.true)
    plain = _errors(windows, lambda one: one.plain - one.true)
    scheduled = _errors(windows, lambda one: one.soak - one.scheduled)
    procstat = Errors(tuple(tuple(e for d, e in ticked if d == duty) for duty in DUTIES))
    rows = [_known_loads(soak, plain, procstat), _beside_scheduler(scheduled)]
    rows += [
        Row(
            f"duty {duty:.0%}",
            _mean(soak.by_level[place]),
            f"plain counting {_mean(plain.by_level[place])}; less what the scheduler gave to"
            f" processes {_mean(scheduled.by_level[place])}",
            f"median {soak.medians[place]:.2f}",
            f"at most {ANY_LEVEL:g}",
            soak.medians[place] <= ANY_LEVEL,
        )
        for place, duty in enumerate(DUTIES)
    ]
    return Part("soak and known loads", HOW, tuple(rows), NOTES)


def _leave(cpu: int) -> None:
    """Let no thread of this process run on a CPU, where it would count as an error."""
    others = os.sched_getaffinity(0) - {cpu}
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), others)


def _errors(windows: Sequence[Window], error: Callable[[Window], float]) -> Errors:
    """In points, by level."""
    levels = ([one for one in windows if one.duty == duty] for duty in DUTIES)
    return Errors(tuple(tuple(100 * error(one) for one in level) for level in levels))


def _window(duty: float, reading: SoakReading, true: float, full: float) -> Window:
    opening, closing = (line["soak"]["cpu_used_ns"][CPU] for line in reading.cpus)
    elapsed = reading.time_ns[1] - reading.time_ns[0]
    busy = next(one.busy for one in reading.per_cpu if one.cpu == CPU)
    return Window(duty, true, 1 - (closing - opening) / elapsed, busy, 1 - _quanta(reading) / full)


def _mean(errors: Sequence[float]) -> str:
    return f"{statistics.fmean(errors):+.2f}, sd {statistics.stdev(errors):.2f}"


def _known_loads(soak: Errors, plain: Errors, procstat: Errors) -> Row:
    return Row(
        "error on known loads, points of one CPU",
        soak.text(),
        f"plain counting: {plain.text()}; procstat: {procstat.text()}",
        f"median {soak.median:.2f}, sd {soak.spread:.2f}",
        f"median at most {MEDIAN:g}, sd at most {SPREAD:g}",
        soak.median <= MEDIAN and soak.spread <= SPREAD,
    )


def _beside_scheduler(errors: Errors) -> Row:
    every = [error for level in errors.by_level for error in level]
    return Row(
        "busy, less what the scheduler gave to all processes but the soaker",
        errors.text(),
        "",
        f"{statistics.fmean(every):+.2f} points",
        "",
        None,
    )


def _quanta(reading: SoakReading) -> float:
    """Quanta a second of the load's CPU."""
    opening, closing = (line["soak"]["cpu_quanta"][CPU] for line in reading.cpus)
    return float(closing - opening) / (reading.time_ns[1] - reading.time_ns[0]) * 1e9


def _procstat(worker: Worker) -> tuple[float, list[int]]:
    """How busy the load's CPU was in a window of procstat, and its edges."""
    reading = reading_of(worker, "procstat", observe(worker, "procstat", SECONDS))
    opening, closing = (line["procstat"] for line in reading.cpus)
    busy = sum(
        closing[f"cpu_{state}"][CPU] - opening[f"cpu_{state}"][CPU]
        for state in ("user", "nice", "system", "irq", "softirq")
    )
    seconds = (reading.time_ns[1] - reading.time_ns[0]) / 1e9
    return busy / reading.clock_ticks / seconds, reading.time_ns
