"""The meters of CPU side by side: what each counted in the same runs, how far they are apart, and
what the likely reason is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from netbench.read.accounts import METER_ORDER
from netbench.read.cells import CellResult
from netbench.read.meter_choice import LEAST
from netbench.report.blocks import Column, Section, Table, Value
from netbench.report.source import Source
from netbench.stats.intervals import Interval

WHO = ("system", "sender", "receiver")
REASONS = {
    "chance": "no more than the runs vary.",
    "softirqs, others": "rusage does not count softirqs, interrupts, and other processes.",
    "missed work": "it counts less than the processes used: see cautions.",
    "not known": "the meters differ by more than chance.",
}


def meters(source: Source) -> Section | None:
    """One row a cell and side that two meters or more have counted; None where there is none."""
    there = [
        meter
        for meter in METER_ORDER
        if any(f"{who}_cpu.{meter}" in c.intervals for c in source.cells for who in WHO)
    ]
    rows = tuple(row for c in source.cells for row in _rows(source, c, there))
    if not rows:
        return None
    columns = (
        *(Column(name, kind="key") for name in (*source.keys, "side")),
        *(Column(f"by {meter}", "CPUs") for meter in there),
        Column("apart"),
        Column("likely reason"),
    )
    reasons = [reason for reason in REASONS if any(row[-1] == reason for row in rows)]
    table = Table("", columns, rows, _notes(reasons))
    return Section("meters", "The meters side by side", (table,))


def _rows(source: Source, c: CellResult, there: list[str]) -> Iterator[tuple[Value, ...]]:
    for who in WHO:
        counted = {
            meter: c.intervals[f"{who}_cpu.{meter}"]
            for meter in there
            if f"{who}_cpu.{meter}" in c.intervals
        }
        if len(counted) < 2:
            continue
        means = [interval.mean for interval in counted.values()]
        yield (
            *source.key(c),
            who,
            *(counted.get(meter) for meter in there),
            f"{(max(means) - min(means)) / max(means):.1%}" if max(means) > 0 else None,
            _reason(source, c, who, counted),
        )


def _reason(source: Source, c: CellResult, who: str, counted: Mapping[str, Interval]) -> str:
    """Why the meters of a cell differ: a key of REASONS."""
    low, high = sorted(counted, key=lambda meter: counted[meter].mean)[:: len(counted) - 1]
    apart = counted[high].mean - counted[low].mean
    halves = [0.0 if math.isnan(i.half_width) else i.half_width for i in counted.values()]
    if any(
        (each.metric, each.cell, each.pair) == (f"{who}_cpu", c.cell, c.pair)
        for each in source.result.contradicted
    ):
        return "missed work"
    if apart <= math.hypot(*halves):
        return "chance"
    return "softirqs, others" if low == LEAST else "not known"


def _notes(reasons: list[str]) -> tuple[str, ...]:
    notes = [
        "Means over the same runs. apart: the largest less the smallest, as a share of the largest."
    ]
    notes += [f"{reason}: {REASONS[reason]}" for reason in reasons]
    return tuple(notes)
