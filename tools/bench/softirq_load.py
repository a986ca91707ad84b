"""A load of soft interrupts alone: a UDP flood from one network namespace into another, whose
interface hands what arrives to another CPU than the sender's (receive packet steering). Nobody
reads it there, so no process pays.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tools.bench import command
from tools.bench.table import Part, Row

RUNS, MILLISECONDS = 10, 1000
FLOOD = """
import socket, sys, time
out, moved, end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0, 0.0
begun = time.monotonic()
while end < begun + float(sys.argv[2]):
    for _ in range(100):
        moved += out.sendto(b"-" * 64, (sys.argv[1], 9))
    end = time.monotonic()
print(f"moved {moved} bytes in {end - begun} s")
"""
HOW = (
    "Hosts in two network namespaces (`lab: netns`). The sender's process sends UDP datagrams of 64"
    " bytes as fast as it can, pinned to one CPU; the receiver's interface hands them to another"
    " (RPS), where no process waits for them. The meters are swept in one campaign,"
    f" {RUNS} runs of {MILLISECONDS / 1000:g} s with each. rusage is of the sending process in the"
    " same runs."
)


def campaign(runs: int, milliseconds: int) -> str:
    """The campaign's text. Errors: RuntimeError on a machine with one CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise RuntimeError("a load of soft interrupts alone needs two CPUs")
    argv = ["python3", "-c", FLOOD, "{address}", "{seconds}"]
    pattern = "moved (?P<bytes>[0-9]+) bytes in (?P<seconds>[0-9.]+) s"
    return yaml.safe_dump(
        {
            "netbench": 1,
            "name": "softirq-load",
            "verify": "off",
            "lab": "netns",
            "hosts": {"snd": {}, "rcv": {}},
            "transfer": {
                "tool": {"argv": argv, "pattern": pattern},
                "pin": {"sender": cpus[0], "receiver": cpus[1]},
                "duration": f"{milliseconds}ms",
                "warmup": "0s",
            },
            "settings": {"receiver.rps": str(cpus[1])},
            "sweep": {"meters": [["rusage", "procstat"], ["rusage", "soak"]]},
            "repeat": {"min": runs, "max": runs},
        },
        sort_keys=False,
    )


def charged(cells: Any) -> tuple[Any, Any, Any]:
    """CPUs busy by rusage, procstat and soak: a row of a result's cells for each."""
    names = ("sender_cpu.rusage", "system_cpu.procstat", "system_cpu.soak")
    rusage, procstat, soak = (cells[cells["metric"] == name].iloc[-1] for name in names)
    return rusage, procstat, soak


def measure() -> Part:
    """Both meters, and rusage."""
    with tempfile.TemporaryDirectory() as name:
        results = command.run(campaign(RUNS, MILLISECONDS), Path(name)).results
    rusage, procstat, soak = charged(results.cells)
    row = Row(
        "CPU of a UDP flood and of its soft interrupts on another CPU",
        f"soak: {_interval(soak)}",
        f"procstat: {_interval(procstat)}; rusage: {_interval(rusage)}",
        f"soak charges {soak['mean'] - rusage['mean']:.3f} CPUs more than rusage, procstat"
        f" {procstat['mean'] - rusage['mean']:.3f}",
        "both more than rusage",
        bool(min(soak["low"], procstat["low"]) > rusage["high"]),
    )
    return Part("Soft interrupts that no process pays for", HOW, (row,))


def _interval(row: Any) -> str:
    return f"{row['mean']:.3f} ±{(row['high'] - row['low']) / 2:.3f} CPUs"
