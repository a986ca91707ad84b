"""CPU of the two processes, as time(1) tells it: user and kernel, of each side."""

from __future__ import annotations

from netbench.analysis.metrics import describe
from netbench.report.blocks import Column, Section, Table
from netbench.report.source import Source

METRICS = ("sender_user_cpu", "sender_kernel_cpu", "receiver_user_cpu", "receiver_kernel_cpu")


def processes(source: Source) -> Section | None:
    """None where no process' times could be read."""
    metrics = [name for name in METRICS if name in source.loaded.metrics]
    found = [c for c in source.cells if any(name in c.intervals for name in metrics)]
    if not found:
        return None
    columns = [Column(name, kind="key") for name in source.keys]
    columns += [Column(describe(name).title, "CPUs") for name in metrics]
    rows = tuple((*source.key(c), *(c.intervals.get(name) for name in metrics)) for c in found)
    note = (
        "By rusage, of the process that moved the data: without softirq work done for it elsewhere. Times 100 it is time(1)'s %."
    )
    return Section("processes", "CPU of the processes", (Table("", tuple(columns), rows, (note,)),))
