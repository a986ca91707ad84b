"""Meters of CPU on known loads: the error of one run, by meter, load and window."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np

from netbench.engine.binding import Edge
from netbench.engine.own_engine import local
from netbench.engine.worker import Worker
from netbench.run import readings
from netbench.run.job import Options
from netbench.run.single_meter import own_worker
from netbench.run.soak_meter import read_window
from tools.bench.table import Part, Row

LOADS = tuple(tenth / 10 for tenth in range(10))
WINDOWS = (0.05, 0.1, 0.2, 0.5, 1.0)  # seconds
RUNS = int(os.environ.get("NETBENCH_BENCH_WINDOWS", "20"))  # of each load and window
CPU = 1  # the load's
BUDGETS = {("procstat", 0.2): 2.5, ("cpuidle", 0.2): 1.0}  # points of one CPU
BY_TICKS = "busy ticks"  # of the same file: what procstat was by
ACCOUNT = "/sys/fs/cgroup/cpuacct/cpuacct.usage_percpu"
LOAD = """
import json, os, select, sys, time
cpu, account = int(sys.argv[1]), sys.argv[2]
os.sched_setaffinity(0, {cpu})
file = os.open(account, os.O_RDONLY) if os.path.exists(account) else None
def mark():
    mine = time.thread_time_ns()  # it brings the scheduler's account of this CPU up to date
    of_all = mine if file is None else int(os.pread(file, 65536, 0).split()[cpu])
    marks.append((time.monotonic_ns(), mine, of_all))
period = 0.02
for line in iter(sys.stdin.readline, ""):
    duty, begun, turn, marks = float(line), time.monotonic(), 0, []
    mark()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        end = begun + turn * period + duty * period
        while time.monotonic() < end:
            pass
        mark()
        turn += 1
        left = begun + turn * period - time.monotonic()
        if left > 0:
            time.sleep(left)
        mark()
    sys.stdin.readline()
    print(json.dumps(marks), flush=True)
"""
HOW = (
    "A busy loop that works for a share of every 20 ms, pinned to one CPU, in a session of its own."
    " At each turn it notes its thread clock and what the scheduler gave to all threads of its CPU"
    f" ({ACCOUNT}; beside soak, what the soaker's own clock leaves). The latter is the truth: a"
    " window's error is what a meter says of that CPU less it, in points of one CPU. Loads 0, 0.1"
    " to 0.9, in rounds of all loads and windows in random order; procstat and cpuidle are read in"
    " the same runs. Where others used the CPU too, a window counts for the load that there was in"
    " all; those at 0.95 and above are left out. sd is within a load, pooled over loads."
)
Marks = Sequence[Sequence[int]]
Errors = dict[tuple[str, float, float], list[float]]  # by meter, window and load


@contextmanager
def loader() -> Iterator[subprocess.Popen[str]]:
    """The load, which waits for its first share."""
    argv, pipe = [sys.executable, "-c", LOAD, str(CPU), ACCOUNT], subprocess.PIPE
    with subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as process:
        yield process
        process.communicate()


def _say(load: subprocess.Popen[str], line: str) -> str:
    assert load.stdin is not None
    assert load.stdout is not None
    load.stdin.write(f"{line}\n")
    load.stdin.flush()
    return load.stdout.readline()


@contextmanager
def working(load: subprocess.Popen[str], share: float) -> Iterator[list[Sequence[int]]]:
    """It works, for as long as the context lasts; its marks are there after it."""
    if _say(load, str(share)) != "ready\n":
        raise RuntimeError("the load did not start")
    time.sleep(0.03)  # a turn and more, for a mark before the window
    marks: list[Sequence[int]] = []
    yield marks
    time.sleep(0.03)
    marks += json.loads(_say(load, ""))


def truth(marks: Marks, edges: Sequence[int]) -> tuple[float, float]:
    """The shares of the load and of all threads of its CPU, between two times."""
    times, mine, of_all = np.array(marks, dtype=float).T
    shares = (np.diff(np.interp(edges, times, each)) / np.diff(edges) for each in (mine, of_all))
    of_load, of_both = (float(share[0]) for share in shares)
    return of_load, of_both


def by_counters(worker: Worker, seconds: float) -> tuple[list[int], dict[str, float]]:
    """A window of procstat and cpuidle: its edges, and how busy the load's CPU was by each."""
    names = [name for name in ("procstat", "cpuidle") if not local().meters[name].row.why]
    options: Options = {"role": "observe", "meters": "\0".join(names), "sample": 0}
    worker.prepare({**options, "duration": int(seconds * 1e9)})
    worker.go()
    worker.await_edge(Edge.CLOSE, seconds + 30)
    worker.stop()
    outcome = worker.result(30)
    edges = readings.counters(outcome.result, worker.catalogue)["time_ns"]
    opening, closing = readings.edge_lines("here", outcome.result, worker.catalogue)
    elapsed = edges[1] - edges[0]

    def spent(meter: str, *counters: str) -> float:
        return math.fsum(
            closing[meter][f"cpu_{each}"][CPU] - opening[meter][f"cpu_{each}"][CPU]
            for each in counters
        )

    tick = 1e9 / worker.hello.clock_ticks
    worked = spent("procstat", "user", "nice", "system", "irq", "softirq") * tick
    idle = {"procstat": spent("procstat", "idle", "iowait", "steal") * tick}
    if "cpuidle" in names:
        idle["cpuidle"] = spent("cpuidle", "idle_ns")
    found = {meter: 1 - each / elapsed for meter, each in idle.items()}
    return edges, found | {BY_TICKS: worked / elapsed}


def by_soak(worker: Worker, seconds: float) -> tuple[list[int], float, float]:
    """A window of soak: its edges, how busy the load's CPU was, and what the scheduler gave to all
    but the soaker.
    """
    reading = read_window(worker, seconds)
    opening, closing = (line["soak"]["cpu_used_ns"][CPU] for line in reading.cpus)
    own = (closing - opening) / (reading.time_ns[1] - reading.time_ns[0])
    busy = next(one.busy for one in reading.per_cpu if one.cpu == CPU)
    return reading.time_ns, busy, 1 - own


def measure_errors() -> tuple[Errors, list[float]]:
    """Errors in points, and what others than the load had of its CPU, a window each."""
    order, others = random.Random(1), []
    errors: Errors = defaultdict(list)
    cells = [(load, window, soaked) for load in LOADS for window in WINDOWS for soaked in (0, 1)]
    with loader() as load, own_worker() as worker:
        for thread in os.listdir("/proc/self/task"):  # its work would be another's
            os.sched_setaffinity(int(thread), os.sched_getaffinity(0) - {CPU})
        rounds = (order.sample(cells, len(cells)) for _ in range(RUNS))
        for share, window, soaked in chain.from_iterable(rounds):
            with working(load, share) as marks:
                if soaked:
                    edges, busy, given = by_soak(worker, window)
                    found = {"soak": busy}
                else:
                    edges, found = by_counters(worker, window)
            of_load, of_all = truth(marks, edges)
            of_all = given if soaked else of_all
            others.append(of_all - of_load)
            for meter, each in found.items():
                errors[meter, window, round(of_all, 1)].append(100 * (each - of_all))
    return errors, others


def row(errors: Errors, meter: str, window: float) -> Row:
    """Of one meter and window: the error of a run, over all loads and by load."""
    found = [np.array(errors.get((meter, window, load), ())) for load in LOADS]
    some = [each for each in found if len(each) > 1]
    sds = [f"{each.std(ddof=1):.2f}" if len(each) > 1 else "-" for each in found]
    budget = BUDGETS.get((meter, window))
    if not some:
        return Row(f"{meter}, {window * 1e3:g} ms", "not measured", "", "", "", None)
    squares = sum(len(each) * float(each.var()) for each in some)
    sd = math.sqrt(squares / sum(len(each) - 1 for each in some))
    means = [float(each.mean()) for each in some]
    return Row(
        f"{meter}, {window * 1e3:g} ms",
        f"sd {sd:.2f}",
        f"by load {' '.join(sds)}",
        f"mean {np.mean(means):+.2f} ({min(means):+.2f} to {max(means):+.2f}), n"
        f" {min(map(len, found))} to {max(map(len, found))} a load",
        f"sd at most {budget:g}" if budget else "",
        sd <= budget if budget else None,
    )


def measure() -> Part:
    """All of it."""
    begun = os.getloadavg()
    errors, others = measure_errors()
    meters = ("cpuidle", "soak", "procstat", BY_TICKS)
    rows = [row(errors, meter, window) for meter in meters for window in WINDOWS]
    loads = " to ".join(f"{load[0]:.1f}" for load in (begun, os.getloadavg()))
    note = (
        f"Others used {np.median(others):.1%} of that CPU, the median of {len(others)} windows;"
        f" load average of the machine {loads} (1 minute)."
    )
    return Part("Meters and known loads", HOW, tuple(rows), (note,))
