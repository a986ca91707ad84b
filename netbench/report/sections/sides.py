"""What each side of a cell did: its CPU by several meters, its interrupts and packets, counters of
perf and energy, and its process as time(1) tells it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from netbench.read.accounts import METER_ORDER
from netbench.read.cells import CellResult
from netbench.read.meter_choice import SIDES_OF_CPU
from netbench.read.metrics import RATIOS, SOAK, describe
from netbench.read.shown_levels import NO_TOOL
from netbench.report.blocks import Prose, Row, Section, Value, keyed, tabled
from netbench.report.source import Source
from netbench.result.record import SIDES

PREFIXES = {"system": "", "sender": "sender_", "receiver": "receiver_"}
"""Of a metric's name, by side; `system`: both together."""
ONE_SIDED = {"gso_size": "sender", "gro_size": "receiver"}
"""Of one side alone, so that their names do not say whose they are."""
OF_SOFTIRQ = (
    *("packets", "bytes_per_packet", "interrupts", "packets_per_interrupt"),
    *("softirqs", "softirq_time", "gso_size", "gro_size"),
)
COUNTED = (
    *("cycles_per_byte", "instructions_per_byte", "instructions_per_cycle"),
    *("cache_misses_per_kib", "context_switches", "energy", "energy_less_idle"),
)
OF_PROCESS = {  # what, by counter, and one of the counter in its unit
    "user [s]": ("user_us", 1e-6),
    "system [s]": ("system_us", 1e-6),
    "elapsed [s]": ("seconds", 1.0),
    "CPU [%]": ("", 100.0),
    "minor faults [/run]": ("minor_faults", 1.0),
    "major faults [/run]": ("major_faults", 1.0),
    "vol. switches [/run]": ("voluntary_switches", 1.0),
    "invol. switches [/run]": ("involuntary_switches", 1.0),
}


def _section(key: str, title: str, rows: Iterable[Row], notes: Iterable[str]) -> Section | None:
    """A table of rows; None where there is none."""
    kept_rows = list(rows)
    return Section(key, title, (tabled("", kept_rows, *notes),)) if kept_rows else None


def _head(name: str) -> str:
    return f"{describe(name).title} [{describe(name).unit}]"


def _about(names: Sequence[str]) -> list[str]:
    return [f"{describe(name).title}: {describe(name).about}." for name in names]


def _by_side(source: Source, names: Sequence[str]) -> Iterator[Row]:
    """A row a cell and side with any of these metrics; of one kernel a row of both."""
    for c in source.cells:
        together = source.result.shared.get(c.pair, False)
        for side, prefix in PREFIXES.items():
            if together != (side == "system"):
                continue
            values: dict[Any, Value] = {
                _head(n): c.intervals.get(n if ONE_SIDED.get(n) == side else f"{prefix}{n}")
                for n in names
            }
            if any(values.values()):
                yield {**source.keyed(c), **keyed("side", side), **values}


def _has(source: Source, name: str) -> bool:
    """Whether a run has a metric, of any side."""
    return any(f"{prefix}{name}" in source.result.metrics for prefix in PREFIXES.values())


def meters(source: Source) -> Section | None:
    """One row a cell and side that two meters or more have counted; None where there is none."""
    by_side = [
        (c, who, {meter: c.intervals.get(f"{who}_cpu.{meter}") for meter in METER_ORDER})
        for c in source.cells
        for who in PREFIXES
    ]
    there = [m for m in METER_ORDER if any(by_meter[m] for *_, by_meter in by_side)]
    rows: list[Row] = []
    for c, who, by_meter in by_side:
        if sum(interval is not None for interval in by_meter.values()) < 2:
            continue
        by = {f"by {meter} [CPUs]": by_meter[meter] for meter in there}
        rows.append({**source.keyed(c), **keyed("side", who), **by})
    notes = [
        "rusage does not count interrupts, softirq work that others did for a process, and other"
        " processes."
    ]
    return _section("meters", "The meters side by side", rows, notes)


def interrupts(source: Source) -> Section | None:
    """One row a cell and side that the meter softirq has read; None without it."""
    names = [name for name in OF_SOFTIRQ if _has(source, name)]
    if "packets" not in names:
        return None
    notes = _about(names)
    if any(f"{metric}.{SOAK}" in source.result.metrics for metric in SIDES_OF_CPU):
        notes.append(
            "Beside soak no CPU is idle, so none stops its clock: the ticks of all CPUs are among"
            " the interrupts."
        )
    if any(source.result.shared.values()):
        notes.append(
            "side=system: one kernel sends and receives, so that each packet is counted twice, as"
            " sent and as received."
        )
    rows = _by_side(source, names)
    return _section("interrupts", "Interrupts and packets", rows, notes)


def counters(source: Source) -> Section | None:
    """One row a cell and side that the meters perf and energy have read; else None."""
    why = _unread(source)
    names = [name for name in COUNTED if name in why or _has(source, name)]
    if not names:
        return None
    together: dict[str, list[str]] = {}
    for name in (name for name in names if name in why):
        together.setdefault(why[name], []).append(describe(name).title)
    notes = [f"{', '.join(of)}: not counted on {reason}." for reason, of in together.items()]
    title = "counters", "Cycles and energy"
    about = _about([name for name in names if name not in why])
    section = _section(*title, _by_side(source, names), [*about, *notes])
    return section or Section(*title, (Prose(tuple(notes)),))


def _unread(source: Source) -> Mapping[str, str]:
    """By metric, on which hosts its counters could not be read, and why."""
    by_counter: dict[str, dict[str, list[str]]] = {}
    for host, entries in source.result.hosts.items():
        unread = {name: why for entry in entries for name, why in entry.unread.items()}
        for row in RATIOS:
            reasons = [unread.get(c) or unread.get(c.partition(".")[0]) for c in row.counters]
            for why in dict.fromkeys(filter(None, reasons)):
                by_counter.setdefault(row.name, {}).setdefault(why, []).append(host)
    return {
        name: "; on ".join(f"{', '.join(hosts)}: {why}" for why, hosts in by_why.items())
        for name, by_why in by_counter.items()
    }


def processes(source: Source) -> Section | None:
    """A row a cell and side, means over its ok runs; None where nothing of a process is known."""

    def mean(c: CellResult, side: str, counter: str, unit: float) -> Value:
        """Over the ok runs that have the counter; None when none has."""
        if not counter:
            busy = c.intervals.get(f"{side}_cpu.rusage")
            return busy.times(unit) if busy else None
        used = source.result.used.get((c.cell, c.pair, side, counter))
        return used.mean * unit if used else None

    rows: list[Row] = []
    for c in source.cells:
        for side in SIDES:
            values = {head: mean(c, side, *counter) for head, counter in OF_PROCESS.items()}
            if any(values[head] is not None for head in values.keys() - {"elapsed [s]", "CPU [%]"}):
                rows.append({**source.keyed(c), **keyed("side", side), **values})
    note = (
        "By getrusage(2), of the process that moved the data, within the measured window"
        " (elapsed): without softirq work that others did for it. 100% is one whole CPU, as"
        " with time(1). Switches of context: voluntary (it waited) and not."
    )
    if any(c.factors.get("tool", NO_TOOL) != NO_TOOL for c in source.cells):
        note += " What a tool used before the window is known in clock ticks (user, system)."
    return _section("processes", "The processes, as time(1) tells it", rows, [note])
