"""Who paid: on which CPUs the work of each cell was."""

from __future__ import annotations

from netbench.read.metrics import describe
from netbench.report.blocks import Column, Section, Table
from netbench.report.source import Source

SHARES = ("sender_paid", "receiver_paid", "others_paid")


def who_paid(source: Source) -> Section | None:
    """One row a cell in which each side had a CPU of its own; None where none did."""
    rows = tuple(
        (*source.key(c), *(c.intervals.get(name) for name in SHARES))
        for c in source.cells
        if SHARES[0] in c.intervals
    )
    if not rows:
        return None
    columns = (
        *(Column(name, kind="key") for name in source.keys),
        *(Column(describe(name).title, describe(name).unit) for name in SHARES),
    )
    notes = tuple(f"{describe(name).title}: {describe(name).about}." for name in SHARES)
    return Section("who_paid", "Who paid", (Table("", columns, rows, notes),))
