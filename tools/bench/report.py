"""Time and memory of reports of many made-up records: a million, and a hundred thousand."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.synthetic import STEPS, Synth
from tools.bench.table import Part, at_most

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


def reported(folder: Path) -> dict[str, Any]:
    """What the report of a result took, and what it was of. Errors: CalledProcessError."""
    argv = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure() -> Part:
    """Two rows for each budget."""
    rows = []
    for cells, runs, seconds, memory in BUDGETS:
        factors = {"send": tuple(STEPS), "chunk": tuple(f"{n}K" for n in range(1, cells // 4 + 1))}
        with tempfile.TemporaryDirectory(prefix="netbench-bench-") as name:
            made = Synth(factors, runs=runs // cells, compare=COMPARE).write(Path(name) / "result")
            found = reported(made)
        what = f"{found['runs']:,} runs of {found['cells']} cells"
        rows += [
            at_most(what, found["wall"], "s", seconds),
            at_most("its memory", found["memory"] / GIB, "GiB", memory),
        ]
    return Part("Reports of many runs", HOW, tuple(rows))
