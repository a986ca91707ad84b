"""Interrupts and packets of each cell: how many packets the work was, and how many interrupts."""

from __future__ import annotations

from netbench.read.meter_choice import SIDES_OF_CPU
from netbench.read.metrics import describe
from netbench.read.soak import SOAK
from netbench.report.blocks import Column, Section, Table
from netbench.report.by_side import side_rows, told
from netbench.report.source import Source

SHOWN = (
    "packets",
    "bytes_per_packet",
    "interrupts",
    "packets_per_interrupt",
    "softirqs",
    "softirq_time",
    "gso_size",
    "gro_size",
)


def interrupts(source: Source) -> Section | None:
    """One row a cell and side that the meter softirq has read, where one kernel is both sides a
    row of both together; None without it.
    """
    if not told(source, "packets"):
        return None
    names = [name for name in SHOWN if told(source, name)]
    rows = tuple(side_rows(source, names))
    if not rows:
        return None
    columns = (
        *(Column(name, kind="key") for name in (*source.keys, "side")),
        *(Column(describe(name).title, describe(name).unit) for name in names),
    )
    notes = [f"{describe(name).title}: {describe(name).about}." for name in names]
    if any(f"{metric}.{SOAK}" in source.result.metrics for metric in SIDES_OF_CPU):
        notes.append(
            "Beside soak no CPU is idle, so none stops its clock: the ticks of all CPUs are among"
            " the interrupts."
        )
    table = Table("", columns, rows, tuple(notes))
    return Section("interrupts", "Interrupts and packets", (table,))
