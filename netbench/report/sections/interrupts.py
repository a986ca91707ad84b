"""Interrupts and packets of each cell: how many packets the work was, and how many interrupts."""

from __future__ import annotations

from netbench.analysis.meter_choice import SIDES_OF_CPU
from netbench.analysis.metrics import describe
from netbench.analysis.soak import SOAK
from netbench.report.blocks import Column, Section, Table, Value
from netbench.report.source import Source

SIDES = {"system": "", "sender": "sender_", "receiver": "receiver_"}
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
    there = set(source.result.metrics)
    if not any(f"{prefix}packets" in there for prefix in SIDES.values()):
        return None
    names = [n for n in SHOWN if any(f"{prefix}{n}" in there for prefix in SIDES.values())]
    rows: list[tuple[Value, ...]] = []
    for c in source.cells:
        together = source.result.shared.get(c.pair, False)
        for side, prefix in SIDES.items():
            if together != (side == "system"):
                continue
            values = [c.intervals.get(f"{prefix}{name}") for name in names]
            if any(values):
                rows.append((*source.key(c), side, *values))
    if not rows:
        return None
    columns = (
        *(Column(name, kind="key") for name in (*source.keys, "side")),
        *(Column(describe(name).title, describe(name).unit) for name in names),
    )
    notes = [f"{describe(name).title}: {describe(name).about}." for name in names]
    if any(f"{metric}.{SOAK}" in there for metric in SIDES_OF_CPU):
        notes.append(
            "Beside soak no CPU is idle, so none stops its clock: the ticks of all CPUs are among"
            " the interrupts."
        )
    table = Table("", columns, tuple(rows), tuple(notes))
    return Section("interrupts", "Interrupts and packets", (table,))
