"""How long reports of many runs take, and how much memory: of a million made-up records, and again
of a hundred thousand whose columns are kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.synthetic import STEPS, Synth
from tools.bench.table import Part, Row

COMPARE = {"factor": "send", "baseline": "readwrite", "margin": 0.01}
PROGRAM = """
import json, resource, sys, time
begun = time.monotonic()
from netbench.report import text
from netbench.report.build import build
report = build(sys.argv[1])
compared = sum(map(len, report.source.comparisons.values()))
size = len(text.render(report))
print(json.dumps({"wall": time.monotonic() - begun, "compared": compared, "size": size,
                  "runs": len(report.source.result.runs), "cells": len(report.source.cells),
                  "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""
GIB = 1 << 30
SMALL = 48
HOW = (
    "Made-up results of four methods and several chunks; each report is built by a process of its"
    " own: records are read, all comparisons made, and the text rendered. Time is from its start to"
    " its end, the median of {repeats} where it is one of several; memory is the largest resident"
    " set. A second report finds the columns of the records beside the result."
)


@dataclass(frozen=True)
class Report:
    """What a report took: seconds, bytes; and what it was of."""

    seconds: float
    memory: float
    runs: int
    cells: int


def _made(folder: Path, cells: int, runs: int) -> Path:
    """A result of so many cells with so many runs each."""
    factors = {"send": tuple(STEPS), "chunk": tuple(f"{n}K" for n in range(1, cells // 4 + 1))}
    return Synth(factors, runs=runs, compare=COMPARE).write(folder)


def _report(folder: Path) -> Report:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    return Report(found["wall"], found["memory"], found["runs"], found["cells"])


def measure(repeats: int = 5) -> Part:
    """A row for each budget."""
    with tempfile.TemporaryDirectory(prefix="netbench-bench-") as name:
        place = Path(name)
        many = _report(_made(place / "million", 100, 10_000))
        small = _made(place / "small", 4, SMALL // 4)
        shortest = sorted(_report(small).seconds for _ in range(repeats))[repeats // 2]
        rows = [
            Row(
                f"{many.runs:,} runs of {many.cells} cells",
                f"{many.seconds:.0f} s",
                "",
                "",
                "at most 60 s",
                many.seconds <= 60,
            ),
            Row(
                "its memory",
                f"{many.memory / GIB:.1f} GiB",
                "",
                "",
                "at most 4 GiB",
                many.memory <= 4 * GIB,
            ),
        ]
        for cells, budget in ((20, 2.0), (100, 2.0), (1000, 5.0)):
            folder = _made(place / f"of-{cells}", cells, 100_000 // cells)
            first = _report(folder)
            again = sorted(_report(folder).seconds for _ in range(repeats))[repeats // 2]
            more = again - shortest
            rows += [
                Row(
                    f"{first.runs:,} runs of {cells} cells, a second time",
                    f"{again:.1f} s; the first {first.seconds:.1f} s",
                    f"{SMALL} runs: {shortest:.1f} s",
                    f"{more:+.1f} s",
                    f"at most {budget:+.0f} s",
                    more <= budget,
                ),
                Row(
                    "its memory, the first time",
                    f"{first.memory / GIB:.2f} GiB",
                    "",
                    "",
                    "at most 1 GiB",
                    first.memory <= GIB,
                ),
            ]
    return Part("Reports of many runs", HOW.format(repeats=repeats), tuple(rows))
