"""Cycles, energy and pressure of each cell. A column that no host could count is empty; a note says
why.
"""

from __future__ import annotations

from collections.abc import Mapping

from netbench.read.metrics import describe
from netbench.read.ratio_table import RATIOS
from netbench.report.blocks import Column, Prose, Section, Table
from netbench.report.by_side import side_rows, told
from netbench.report.source import Source

SHOWN = (
    "cycles_per_byte",
    "instructions_per_byte",
    "instructions_per_cycle",
    "cache_misses_per_kib",
    "context_switches",
    "energy",
    "energy_less_idle",
    "cpu_pressure",
    "irq_pressure",
)


def counters(source: Source) -> Section | None:
    """One row a cell and side that the meters perf, energy and psi have read; None where none of
    them was asked for.
    """
    why = _reasons(source)
    names = [name for name in SHOWN if name in why or told(source, name)]
    if not names:
        return None
    notes = tuple(
        f"{', '.join(describe(name).title for name in of_reason)}: not counted on {reason}."
        for reason, of_reason in _together(why).items()
    )
    rows = tuple(side_rows(source, names))
    if not rows:
        return Section("counters", "Cycles, energy and pressure", (Prose(notes),))
    columns = (
        *(Column(name, kind="key") for name in (*source.keys, "side")),
        *(Column(describe(name).title, describe(name).unit) for name in names),
    )
    about = tuple(
        f"{describe(name).title}: {describe(name).about}." for name in names if name not in why
    )
    table = Table("", columns, rows, (*about, *notes))
    return Section("counters", "Cycles, energy and pressure", (table,))


def _reasons(source: Source) -> Mapping[str, str]:
    """By metric, on which hosts its counters could not be read, and why."""
    found: dict[str, dict[str, list[str]]] = {}
    for host, entries in source.result.hosts.items():
        unread = {name: why for entry in entries for name, why in entry.unread.items()}
        for row in RATIOS:
            reasons = [unread.get(c) or unread.get(c.partition(".")[0]) for c in row.counters]
            for why in dict.fromkeys(filter(None, reasons)):
                found.setdefault(row.name, {}).setdefault(why, []).append(host)
    return {
        name: "; on ".join(f"{', '.join(hosts)}: {why}" for why, hosts in by_why.items())
        for name, by_why in found.items()
    }


def _together(why: Mapping[str, str]) -> dict[str, list[str]]:
    """The metrics of each reason, of those that are shown."""
    groups: dict[str, list[str]] = {}
    for name in (name for name in SHOWN if name in why):
        groups.setdefault(why[name], []).append(name)
    return groups
