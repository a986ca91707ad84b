"""`meter`: one meter alone on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from netbench.cli.output import say, say_json
from netbench.cli.verb import Verb

if TYPE_CHECKING:
    from netbench.conductor.single_meter import MeterReading

CpuCounters = Mapping[str, list[int | None]]
"""One number a CPU, by counter; None for a CPU that is offline."""


def _run(options: argparse.Namespace) -> int:
    from netbench.conductor.single_meter import read_meter

    reading = read_meter(options.name, options.seconds)
    if options.json:
        say_json(asdict(reading))
    else:
        say(_text(reading))
    return 0


def _text(reading: MeterReading) -> str:
    """The share of each state by CPU where the meter counts each CPU's time, else each counter's
    difference, and that of each CPU.
    """
    seconds = (reading.time_ns[1] - reading.time_ns[0]) / 1e9
    lines = [f"{reading.meter} over {seconds:.2f} s"]
    edges = {line["edge"]: line[reading.meter] for line in reading.cpus}
    by_cpu = {"open", "close"} <= edges.keys()
    if by_cpu and {reading.units.get(name) for name in edges["open"]} == {"ticks"}:
        return "\n".join([*lines, _cpu_table(edges["open"], edges["close"])])
    for name, (before, after) in reading.counters.items():
        lines.append(f"  {name:24} {after - before} {reading.units.get(name, '')}".rstrip())
    for name in edges["open"] if by_cpu else ():
        pairs = zip(edges["open"][name], edges["close"][name], strict=True)
        moved = (_difference(before, after) for before, after in pairs)
        numbers = " ".join("-" if number is None else str(number) for number in moved)
        lines.append(f"  {name:24} {numbers} {reading.units.get(name, '')}".rstrip())
    return "\n".join(lines)


def _cpu_table(opening: CpuCounters, closing: CpuCounters) -> str:
    """Percent of each CPU's own time in each state; a CPU that is offline shows dashes."""
    rows: list[list[str]] = [["CPU", *(name.removeprefix("cpu_") for name in opening)]]
    for cpu in range(len(next(iter(opening.values())))):
        spent = [_difference(opening[name][cpu], closing[name][cpu]) for name in opening]
        total = sum(ticks for ticks in spent if ticks is not None)
        shares = (
            "-" if ticks is None or not total else f"{100 * ticks / total:.1f}%" for ticks in spent
        )
        rows.append([str(cpu), *shares])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a meter of `list meters`")
    parser.add_argument(
        "--seconds", type=float, default=1.0, metavar="N", help="how long (default: 1)"
    )


VERB = Verb(
    "meter",
    "one meter alone on this machine: what each CPU did",
    _run,
    _add_arguments,
    to_json=True,
)
