"""How long reports of many runs take, and how much memory: of a million made-up records, and of a
hundred thousand.
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
HOW = (
    "Made-up results of four methods and several chunks; each report is built by a process of its"
    " own: records are read, all comparisons made, and the text rendered. Time is from its start to"
    " its end; memory is the largest resident set."
)
BUDGETS = ((100, 1_000_000, 80, 4), (20, 100_000, 10, 1), (100, 100_000, 10, 1))
"""Cells, runs, seconds and GiB."""


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


def measure() -> Part:
    """Two rows for each budget."""
    rows = []
    for cells, runs, seconds, memory in BUDGETS:
        with tempfile.TemporaryDirectory(prefix="netbench-bench-") as name:
            found = _report(_made(Path(name) / "result", cells, runs // cells))
        what = f"{found.runs:,} runs of {found.cells} cells"
        took, used = f"{found.seconds:.1f} s", f"{found.memory / GIB:.2f} GiB"
        rows += [
            Row(what, took, "", "", f"at most {seconds} s", found.seconds <= seconds),
            Row("its memory", used, "", "", f"at most {memory} GiB", found.memory <= memory * GIB),
        ]
    return Part("Reports of many runs", HOW, tuple(rows))
