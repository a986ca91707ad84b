"""The meters of CPU side by side: what each counted in the same runs, how far they are apart, and
what the likely reason is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from netbench.analysis.accounts import METER_ORDER
from netbench.analysis.cells import CellResult
from netbench.analysis.host_cpus import cpus_online
from netbench.analysis.intervals import Interval
from netbench.analysis.meter_choice import LEAST
from netbench.analysis.tick_error import samples_a_second, tick_error
from netbench.record import SIDES
from netbench.report.blocks import Column, Section, Table, Value
from netbench.report.source import Source

WHO = ("system", "sender", "receiver")
BY_TICKS = "procstat"
REASONS = {
    "chance": "no more than the runs vary, and ticks err.",
    "softirqs, others": "rusage does not count softirqs, interrupts, and other processes.",
    "between ticks": "procstat does not see work that begins and ends between two ticks.",
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
        *([Column("tick error", "CPUs")] if BY_TICKS in there else []),
        Column("apart"),
        Column("likely reason"),
    )
    reasons = [reason for reason in REASONS if any(row[-1] == reason for row in rows)]
    table = Table("", columns, rows, _notes(there, reasons))
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
        error = _error(source, c, who)
        means = [interval.mean for interval in counted.values()]
        yield (
            *source.key(c),
            who,
            *(counted.get(meter) for meter in there),
            *([error] if BY_TICKS in there else []),
            f"{(max(means) - min(means)) / max(means):.1%}" if max(means) > 0 else None,
            _reason(source, c, who, counted, error),
        )


def _error(source: Source, c: CellResult, who: str) -> float | None:
    """The standard error of one run by procstat; None where CPUs, ticks or windows are not
    known.
    """
    if who == "system" and not source.result.shared.get(c.pair):
        sides = [_error(source, c, side) for side in SIDES]
        return None if None in sides else math.hypot(*(e for e in sides if e is not None))
    side = "receiver" if who == "receiver" else "sender"
    host = c.pair.split(">")[SIDES.index(side)]
    entries, busy = source.result.hosts.get(host, ()), c.intervals.get(f"{who}_cpu.{BY_TICKS}")
    cpus, window = cpus_online(entries), source.result.used.get((c.cell, c.pair, side, "seconds"))
    ticks = samples_a_second(entries)
    if busy is None or not cpus or not ticks or window is None or window.mean <= 0:
        return None
    return tick_error(busy.mean, cpus, ticks, window.mean)


def _reason(
    source: Source, c: CellResult, who: str, counted: Mapping[str, Interval], error: float | None
) -> str:
    """Why the meters of a cell differ: a key of REASONS."""
    low, high = sorted(counted, key=lambda meter: counted[meter].mean)[:: len(counted) - 1]
    apart = counted[high].mean - counted[low].mean
    halves = [0.0 if math.isnan(i.half_width) else i.half_width for i in counted.values()]
    random = math.hypot(*halves, (error or 0.0) / math.sqrt(max(1, c.n)))
    if any(
        (each.metric, each.cell, each.pair) == (f"{who}_cpu", c.cell, c.pair)
        for each in source.result.contradicted
    ):
        return "missed work"
    if apart <= random:
        return "chance"
    if low == LEAST:
        return "softirqs, others"
    return "between ticks" if low == BY_TICKS else "not known"


def _notes(there: list[str], reasons: list[str]) -> tuple[str, ...]:
    notes = [
        "Means over the same runs. apart: the largest less the smallest, as a share of the largest."
    ]
    notes += [f"{reason}: {REASONS[reason]}" for reason in reasons]
    if BY_TICKS in there:
        notes.append(
            "tick error: the standard error of one run, where CPU is sampled at clock ticks,"
            " sqrt(p (1-p) / (HZ T)) for each CPU, p the share of its time that is busy, T the"
            " window."
        )
    return tuple(notes)
