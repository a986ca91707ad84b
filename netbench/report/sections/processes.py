"""What the two processes used, as time(1) tells it: CPU time, page faults and context switches of
each side.
"""

from __future__ import annotations

from collections.abc import Iterator

from netbench.read.cells import CellResult
from netbench.report.blocks import Column, Section, Table, Value
from netbench.report.source import Source
from netbench.result.record import SIDES

FIRST = (
    ("user", "s", "user_us", 1e-6),
    ("system", "s", "system_us", 1e-6),
    ("elapsed", "s", "seconds", 1.0),
)
LAST = (  # name, unit, counter, and one of the counter in that unit
    ("minor faults", "/run", "minor_faults", 1.0),
    ("major faults", "/run", "major_faults", 1.0),
    ("vol. switches", "/run", "voluntary_switches", 1.0),
    ("invol. switches", "/run", "involuntary_switches", 1.0),
)


def processes(source: Source) -> Section | None:
    """One row a cell and side, means over its ok runs; None where nothing of a process could be
    read.
    """
    rows = tuple(row for c in source.cells for row in _rows(source, c))
    if not rows:
        return None
    columns = (
        *(Column(name, kind="key") for name in (*source.keys, "side")),
        *(Column(name, unit) for name, unit, *_ in FIRST),
        Column("CPU", "%"),
        *(Column(name, unit) for name, unit, *_ in LAST),
    )
    notes = (
        (
            "By getrusage(2), of the process that moved the data, within the measured window"
            " (elapsed): without softirq work that others did for it. 100% is one whole CPU, as"
            " with time(1). Switches of context: voluntary (it waited) and not."
        ),
    )
    return Section(
        "processes", "The processes, as time(1) tells it", (Table("", columns, rows, notes),)
    )


def _rows(source: Source, c: CellResult) -> Iterator[tuple[Value, ...]]:
    for side in SIDES:
        if not any(
            _mean(source, c, side, counter, 1) is not None
            for _, _, counter, _ in (*FIRST[:2], *LAST)
        ):
            continue
        busy = c.intervals.get(f"{side}_cpu.rusage")
        yield (
            *source.key(c),
            side,
            *(_mean(source, c, side, counter, unit) for _, _, counter, unit in FIRST),
            busy.times(100) if busy else None,
            *(_mean(source, c, side, counter, unit) for _, _, counter, unit in LAST),
        )


def _mean(source: Source, c: CellResult, side: str, counter: str, unit: float) -> float | None:
    """Mean over the ok runs that have the counter; None when none has."""
    used = source.result.used.get((c.cell, c.pair, side, counter))
    return used.mean * unit if used else None
