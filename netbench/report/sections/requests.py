"""Requests in one table: load, rate, latency and what one costs."""

from __future__ import annotations

from collections.abc import Iterator

from netbench.base.units import count
from netbench.read.cells import CellResult
from netbench.read.load_curves import ANSWERED, KNEE, OFFERED
from netbench.read.offered import KEY, word
from netbench.read.shown_levels import NO_TOOL
from netbench.report.blocks import Prose, Row, Section, keyed, tabled
from netbench.report.numbers import number
from netbench.report.source import Source

MEASURED = {"qps [1/s]": ANSWERED, "avglat [µs]": "latency", "p95 [µs]": "p95", "p99 [µs]": "p99"}
COSTS = {
    "cpu [CPUs]": "system_cpu receiver_cpu",
    "cpu a request [µs]": "system_request_demand receiver_request_demand",
    "interrupts a request": "interrupts_per_request receiver_interrupts_per_request",
}
"""By column the metrics of both sides on one kernel, and of the server."""


def requests(source: Source) -> Section | None:
    """One row a cell of requests; None where none was answered."""
    asked = [c for c in source.cells if ANSWERED in c.intervals]
    if not asked:
        return None
    rows = [_row(source, c) for c in source.cells if c in asked or not c.intervals]
    uncounted = {head for head in COSTS if all(row[head] is None for row in rows)}
    rows = [{head: row[head] for head in row if head not in uncounted} for row in rows]
    together = {source.result.shared.get(c.pair, False) for c in asked}
    whose = {True: "both sides, which share a kernel", False: "the server (receiver)"}
    note = (
        "load: requests a second that were due (open loop), or closed; qps: answered within the"
        f" window; cpu, interrupts: of {' or '.join(whose[each] for each in sorted(together))}."
    )
    rates = sorted(c.intervals[ANSWERED].mean for c in asked)
    ends = " to ".join(dict.fromkeys(map(number, (rates[0], rates[-1]))))
    lines = [*knees(source), f"Knee: {KNEE}."] if source.load_curves else []
    lines = lines or [f"{count(len(asked), 'cell')}, {ends} requests a second."]
    return Section("requests", "Requests", (Prose(tuple(lines)), tabled("", rows, note)))


def _row(source: Source, c: CellResult) -> Row:
    tool = c.factors.get("tool") or (source.result.asked or {}).get("transfer.tool") or NO_TOOL
    load = word(source.result, c.factors) or ("closed" if tool == NO_TOOL else None)
    keys = {h: w for h, w in source.keyed(c).items() if h.name not in (KEY, "cell")}
    system = source.result.shared.get(c.pair, False)
    names = MEASURED | {head: both.split()[not system] for head, both in COSTS.items()}
    return {**keys, **keyed("load", load), **{h: c.intervals.get(n) for h, n in names.items()}}


def knees(source: Source) -> Iterator[str]:
    """Of each curve whether its rates have a knee, and what that rate, or the highest, shows."""
    for curve in source.load_curves:
        least, at = curve.cells[0], curve.knee or curve.cells[-1]
        p99, answered = (at.intervals[name].mean for name in ("p99", ANSWERED))
        name = source.key_without(least, KEY)
        what = "Knee at" if curve.knee else "No knee up to"
        yield (
            f"{f'{name}: {what.lower()}' if name else what} {word(source.result, at.factors)}: p99"
            f" {number(p99)} µs, {p99 / least.intervals['p99'].mean:.3g} times that of"
            f" {word(source.result, least.factors)};"
            f" {answered / at.intervals[OFFERED].mean:.1%} of what was due was answered in time."
        )
