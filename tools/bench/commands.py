"""What one command costs beside the run that it is for."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.bench.table import Part, Row, at_most

TIMES = 15
CAMPAIGN = """netbench: 1
name: smallest
hosts: {a: local}
verify: off
transfer: {duration: 100ms, warmup: 10ms, congestion: cubic}
repeat: {min: 1, max: 1}
"""
# As it is installed to run: pyarrow is an extra, which pandas imports where it is there.
START = (
    "import runpy, sys; sys.modules['pyarrow'] = None; runpy.run_module('netbench', {}, '__main__')"
)
COMMANDS = (  # words, seconds of its window and warm-up, and the budget beside these
    (("--help",), 0.0, 0.08),
    (("check", "smallest.yaml"), 0.0, 0.4),
    (("run", "smallest.yaml"), 0.11, 1.0),
    (("transfer", "duration=1s"), 1.2, 0.35),
)
MEMORY = 110.0  # MB of the controller of a one-shot

TITLE = "One command"
HOW = (
    f"Wall time of `python -m netbench` with these words, {TIMES} times each in turn, from its"
    " start to its end, less its window and warm-up: the median, and the quartiles. `check` looks"
    " at the host's load for 0.2 s. Memory is the largest resident set of the controller (rusage)."
)


def measure() -> Part:
    """A row each. Errors: CalledProcessError."""
    seconds: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "smallest.yaml").write_text(CAMPAIGN)
        for _ in range(TIMES):
            for at, (words, own, _) in enumerate(COMMANDS):
                took, memory = _once(words, folder)
                seconds.setdefault(at, []).append(took - own)
    rows: list[Row] = []
    for at, (words, _, most) in enumerate(COMMANDS):
        low, middle, high = statistics.quantiles(seconds[at], n=4)
        rows.append(at_most(f"`{' '.join(words)}`", middle, "s", most, f"{low:.2f} to {high:.2f}"))
    rows.append(at_most("memory of the last", memory, "MB", MEMORY))
    return Part(TITLE, HOW, tuple(rows))


def _once(words: Sequence[str], folder: str) -> tuple[float, float]:
    """Seconds, and MB. Errors: CalledProcessError."""
    argv, begun = [sys.executable, "-c", START, *words], time.monotonic()
    with subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        took, process.returncode = time.monotonic() - begun, os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return took, used.ru_maxrss / 1024
