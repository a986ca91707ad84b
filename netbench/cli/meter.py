"""`meter`: one meter alone on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from netbench.cli.output import say, say_json
from netbench.cli.verb import add_json

if TYPE_CHECKING:
    from netbench.run.single_meter import MeterReading
    from netbench.run.soak_meter import SoakReading

IDLE_FROM = {
    "window": "counted in the quietest parts of this window",
    "none": "not known: no part of this window was quiet",
}
CpuCounters = Mapping[str, list[int | None]]
"""One number a CPU, by counter; None for a CPU that is offline."""


def run(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from netbench.read.metrics import SOAK
    from netbench.run.single_meter import read_meter
    from netbench.run.soak_meter import read_soak

    reading = (
        read_soak(options.seconds)
        if options.name == SOAK
        else read_meter(options.name, options.seconds)
    )
    if options.json:
        say_json(asdict(reading))
    else:
        say(_text(reading))
    return 0


def _text(reading: MeterReading) -> str:
    """How busy each CPU was, where the meter tells; the share of each state by CPU where it counts
    each CPU's time; else each counter's difference, and that of each CPU.
    """
    from netbench.run.soak_meter import SoakReading

    seconds = (reading.time_ns[1] - reading.time_ns[0]) / 1e9
    lines = [f"{reading.meter} over {seconds:.2f} s"]
    if isinstance(reading, SoakReading):
        return "\n".join([*lines, *_loads(reading)])
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


def _loads(reading: SoakReading) -> Iterator[str]:
    yield "CPU    busy  slow-down"
    for load in reading.per_cpu:
        slower = "-" if load.slow_down is None else f"{load.slow_down:.1%}"
        yield f"{load.cpu:>3}  {load.busy:6.1%}  {slower:>9}"
    yield f"idle share {reading.idle_share:.2%}, {IDLE_FROM[reading.idle_from]}"
    yield from (f"warning: {what}" for what in reading.doubts)


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("name", metavar="NAME", help="a meter of `list meters`")
    parser.add_argument(
        "--seconds", type=float, default=1.0, metavar="N", help="how long (default: 1)"
    )
