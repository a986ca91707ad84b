"""What meters cost the run that they measure: the time to read them at an edge of the window, and
throughput with all of them beside throughput with none.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from netbench.base.json_lines import now
from netbench.engine.build_native import CFLAGS, compiler
from netbench.engine.heartbeat import Heartbeat
from netbench.engine.local import local
from netbench.engine.worker import Worker
from netbench.hosts.local import LocalChannel
from netbench.read.derive import metrics_of
from netbench.result.record import Record, SideCounters
from netbench.run import readings
from netbench.run.exchange import exchange
from netbench.run.job import Options
from tools.bench.table import Part, Row

NATIVE = Path(__file__).resolve().parents[2] / "native"
EDGES = Path(__file__).with_name("edges.c")
READINGS = 400
EDGE_BUDGET = 200e3  # ns, on 2 CPUs
PAIRS = int(os.environ.get("NETBENCH_BENCH_PAIRS", "60"))
WINDOW_NS = 10**9
MARGIN = 0.02
T_95 = 2.001  # Student's t of 59 degrees of freedom, two-sided 95%

HOW = (
    f"Reading: `tools/bench/edges.c`, compiled with the engine's files, reads the meters {READINGS}"
    " times as a run does at an edge; shown are the median and the 95th percentile (the largest are"
    " times in which the reader was not running). Throughput: runs of"
    f" {WINDOW_NS / 1e9:g} s over loopback (write to trunc, cubic, both sides on one CPU: what a"
    " meter takes is taken from the bytes there, and runs differ by a tenth of those on two),"
    f" {PAIRS} pairs, one of each with every meter that runs here but soak and one with none, in"
    " random order, and as many of soak alone; the ratio is the mean of the pairs' log ratios with"
    " its 95% interval."
)


def metered() -> list[str]:
    """Meters that run here and are asked for, without soak."""
    return [
        name
        for name, meter in local().meters.items()
        if not meter.has("always") and not meter.row.why and name != "soak"
    ]


def _build(folder: Path) -> Path:
    target = folder / "edges"
    sources = [path for path in NATIVE.glob("src/**/*.c") if path.name != "main.c"]
    places = ["-I", str(NATIVE / "include"), "-I", str(NATIVE / "src")]
    argv = [*compiler(), *CFLAGS, *places, *map(str, sources), str(EDGES), "-o", str(target)]
    subprocess.run(argv, check=True)
    return target


def edge_row(program: Path, meters: Sequence[str], what: str, budget: bool) -> Row:
    """How long it takes to read these meters."""
    shown = subprocess.run(
        [str(program), str(READINGS), *meters], check=True, capture_output=True, text=True
    )
    times = sorted(int(line) for line in shown.stdout.split())
    median, late = times[len(times) // 2], times[int(len(times) * 0.95)]
    return Row(
        what,
        f"{median / 1e3:.1f} µs",
        "",
        f"95% within {late / 1e3:.1f} µs",
        f"at most {EDGE_BUDGET / 1e3:.0f} µs" if budget else "",
        median <= EDGE_BUDGET if budget else None,
    )


def _throughput(sender: Worker, receiver: Worker, meters: Sequence[str]) -> float:
    """Gb/s of one run."""
    common: Options = {
        "token": os.urandom(16),
        "streams": 1,
        "address": "127.0.0.1",
        "duration": WINDOW_NS,
        "warmup": 10**8,
        "sample": 0,
        "meters": "\0".join(meters),
        "interface": "lo",
        "congestion": "cubic",
    }
    done = exchange(
        sender,
        receiver,
        common
        | {"role": "send", "method": "write", "chunk": 65536, "source": "memory", "cpu": (0,)},
        common
        | {
            "role": "receive",
            "method": "trunc",
            "receive_chunk": 65536,
            "without_host_wide": 1,
            "cpu": (0,),
        },
    )
    counters = readings.counters(done.receiver.result, receiver.catalogue)
    side = SideCounters("here", tuple(counters.pop("time_ns")), meters=counters)
    record = Record(1, "all", "here>here", 0, 0, {}, "ok", "", now(), receiver=side)
    return float(metrics_of(record, {}, True)["throughput"])


def throughput_row(meters: Sequence[str], what: str, budget: bool) -> Row:
    """Throughput with these meters beside that with none."""
    workers = [Worker(LocalChannel("here").start_mover(), "here") for _ in range(2)]
    heartbeat = Heartbeat()
    for worker in workers:
        heartbeat.add(worker)
    order, logs = random.Random(1), []
    try:
        for _ in range(PAIRS):
            choices: list[Sequence[str]] = [meters, []]
            pair = {}
            for which in order.sample((0, 1), 2):
                pair[which] = _throughput(workers[0], workers[1], choices[which])
            logs.append(math.log(pair[0] / pair[1]))
    finally:
        heartbeat.stop()
        for worker in workers:
            worker.close()
    mean, half = statistics.mean(logs), T_95 * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = math.expm1(mean - half), math.expm1(mean + half)
    return Row(
        f"throughput with {what} over throughput with none",
        f"{math.expm1(mean):+.2%}",
        "",
        f"{low:+.2%} to {high:+.2%}",
        f"equivalent within {MARGIN:.0%}" if budget else "",
        (low > -MARGIN and high < MARGIN) if budget else None,
    )


def measure() -> Part:
    """The part."""
    names = metered()
    with tempfile.TemporaryDirectory() as folder:
        program = _build(Path(folder))
        rows = [edge_row(program, [name], f"read {name}", False) for name in names]
        rows.append(edge_row(program, names, f"read {', '.join(names)}", True))
    rows.append(throughput_row(names, "all meters but soak", True))
    rows.append(throughput_row(["soak"], "soak", False))
    return Part("What meters cost", HOW, tuple(rows))
