"""Meters of CPU at a low load, in interleaved runs of one campaign, and what soak itself changes at
full speed.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from tools.bench import command
from tools.bench.table import Part, Row

NARROWER = 1 / 3
RUNS = 100  # with each meter: of 15, widths are known to a fifth only
LOW_LOAD = f"""\
netbench: 1
name: low-load
verify: off
transfer: {{duration: 200ms, warmup: 100ms, rate: 100Mb/s, congestion: cubic, pin: apart}}
sweep: {{meters: [[rusage, procstat], [rusage, soak]]}}
repeat: {{min: {RUNS}, max: {RUNS}, metrics: [throughput]}}
"""
FULL_LOAD = """\
netbench: 1
name: full-load
verify: off
transfer: {duration: 500ms, warmup: 100ms, congestion: cubic}
sweep: {meters: [[], [soak]]}
repeat: {min: 15, max: 15, metrics: [throughput]}
compare: {factor: meters, baseline: '[]', margin: 2%}
"""
HOW = (
    "Campaigns on this machine over loopback, the meters swept, so that runs with each are"
    f" interleaved in random order; {RUNS} runs of 200 ms with each, at 100 Mb/s with each side on"
    " a CPU of its own. An idle window of soak is before each block of two runs."
)


def measure() -> Part:
    """Both campaigns."""
    with tempfile.TemporaryDirectory() as name:
        rows = (*_low_load(Path(name)), _own_effect(Path(name)))
    return Part("soak and procstat at a low load", HOW, rows)


def _low_load(folder: Path) -> tuple[Row, Row]:
    results = command.run(LOW_LOAD, folder).results
    cpu = results.cells[results.cells["metric"] == "system_cpu"].set_index("meters")
    widths = (cpu["high"] - cpu["low"]) / 2
    ticks, soak = (widths[name] for name in cpu.index)
    busy = results.runs.set_index("run")["system_cpu.soak"].dropna()
    scheduled = pd.Series(_scheduled(results.path)).loc[busy.index]
    return (
        Row(
            "interval of system_cpu at 100 Mb/s",
            f"soak: {_mean(cpu, 1)}",
            f"procstat: {_mean(cpu, 0)}",
            f"{soak / ticks:.2f} times as wide",
            "at most 1/3",
            bool(soak <= NARROWER * ticks),
        ),
        Row(
            "soak's runs: standard deviation between them",
            f"{busy.std():.4f} CPUs",
            "of what the scheduler gave to all processes but the soakers:"
            f" {scheduled.std():.4f} CPUs",
            f"the one less the other: {(busy - scheduled).mean():+.4f}, sd"
            f" {(busy - scheduled).std():.4f}",
            "",
            None,
        ),
    )


def _scheduled(result: Path) -> dict[int, float]:
    """By run of soak, CPUs that the scheduler gave to all processes but the soakers."""
    found = {}
    for line in (result / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        side = record["sender"]
        if "soak" in side:
            elapsed, used = (
                end - start for start, end in (side["time_ns"], side["soak"]["used_ns"])
            )
            found[record["run"]] = side["soak"]["cpus"][0] - used / elapsed
    return found


def _mean(cpu: Any, place: int) -> str:
    row = cpu.iloc[place]
    return f"{row['mean']:.4f} ±{(row['high'] - row['low']) / 2:.4f} CPUs"


def _own_effect(folder: Path) -> Row:
    """Throughput with soak over throughput without any meter."""
    cells = command.run(FULL_LOAD, folder).results.cells
    rates = cells[cells["metric"] == "throughput"]["mean"]
    return Row(
        "throughput beside soakers",
        f"{rates.iloc[1]:.2f} Gb/s",
        f"without meters: {rates.iloc[0]:.2f} Gb/s",
        f"{rates.iloc[1] / rates.iloc[0] - 1:+.1%}",
        "",
        None,
    )
