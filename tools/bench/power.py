"""Whether campaigns find a true difference as often as the planner says: a sender that waits before
each write, how much slower that makes it by 2,000 runs, and campaigns of the size that `plan
--power` has for 80%.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from pathlib import Path

from netbench.analysis.power import POWER, units_needed
from netbench.engine.build_native import CFLAGS, compiler
from tools.bench import command
from tools.bench.questions import Count
from tools.bench.table import Part, Row
from tools.bench.truth import binomial, percent

LEAST, CAMPAIGNS = 26, 40
CALIBRATED = 1000  # blocks of two runs
WAIT_NS = 300
PROGRAM = Path(__file__).with_name("paced.c")
TEXT = """\
netbench: 1
name: power
verify: off
tools:
  plain:
    client: taskset -c {{sender_cpu}} {program} send {{address}} {{port}} {{seconds}} {{chunk}} 0
    server: taskset -c {{receiver_cpu}} {program} receive {{port}}
    ready: listening
    captures: {{throughput: '(?P<bytes>\\d+) bytes in (?P<seconds>[\\d.]+) s'}}
  waits:
    client: >-
      taskset -c {{sender_cpu}} {program} send {{address}} {{port}} {{seconds}} {{chunk}} {wait}
    server: taskset -c {{receiver_cpu}} {program} receive {{port}}
    ready: listening
    captures: {{throughput: '(?P<bytes>\\d+) bytes in (?P<seconds>[\\d.]+) s'}}
transfer: {{duration: {duration}, chunk: 64K, congestion: cubic, pin: same}}
sweep: {{tool: [plain, waits]}}
compare: {{factor: tool, baseline: plain}}
repeat: {{min: {runs}, max: {runs}, metrics: [throughput]}}
order: {{seed: {seed}}}
"""
HOW = (
    "`tools/bench/paced.c` sends 64K chunks over loopback, sender and receiver on one CPU, so that"
    " neither can hide what the other does; the slower one waits for {wait} ns before each."
    " {calibrated} runs of {duration} of each calibrate by how much. The number of blocks is what"
    " the planner names for a power of {power:.0%} by the spread of those runs; {campaigns}"
    " campaigns of that size, each with its own order, then look for the difference."
)


def measure(
    campaigns: int = CAMPAIGNS, calibrated: int = CALIBRATED, duration: str = "20ms"
) -> Part:
    """One row."""
    asked = {"wait": WAIT_NS, "duration": duration, "calibrated": calibrated}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked["program"] = str(_build(folder))
        pilot = command.run(TEXT.format(runs=calibrated, seed=0, **asked), folder).results
        (truth,) = pilot.source.comparisons["throughput"]
        n = units_needed(abs(math.log(truth.ratio)), truth.sd, truth.confidence)
        if n is None:
            raise RuntimeError(f"no number of blocks shows {truth.sentence}")
        total = Count(0, 0)
        for seed in range(1, campaigns + 1):
            (found,) = command.run(
                TEXT.format(runs=n, seed=seed, **asked), folder
            ).results.source.comparisons["throughput"]
            total += Count(found.verdict == "worse", 1)
    how = HOW.format(power=POWER, campaigns=campaigns, **asked)
    truth_said = f"{truth.ratio - 1:+.2%} ({truth.low - 1:+.2%} to {truth.high - 1:+.2%})"
    return Part("What the planner promises", how, (row(total, truth_said, n),))


def row(count: Count, truth: str, n: int) -> Row:
    """The row, with the difference and the size of a campaign."""
    low, high = binomial(count)
    least = round(LEAST / CAMPAIGNS * count.looks)
    return Row(
        f"a difference of {truth} is found in {n} blocks",
        f"{count.hits} of {count.looks}",
        "",
        f"{percent(low)} to {percent(high)}",
        f"at least {least} of {count.looks}",
        count.hits >= least,
    )


def _build(folder: Path) -> Path:
    """Compile the tool. Errors: CalledProcessError."""
    target = folder / "paced"
    subprocess.run([*compiler(), *CFLAGS, "-static", str(PROGRAM), "-o", str(target)], check=True)
    return target
