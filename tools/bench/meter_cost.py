"""What meters cost the run that they measure: throughput with all, beside that with none."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from netbench.engine.own_engine import local
from tools.bench import command, comparisons
from tools.bench.table import Part

RUNS, MARGIN = 60, 0.02
CAMPAIGN = """\
netbench: 1
name: meter-cost
verify: off
transfer: {{send: write, receive: trunc, duration: 1s, warmup: 100ms, chunk: 64K, sample: 0,
  congestion: cubic, pin: same}}
sweep: {{meters: [[rusage], {all}, [rusage, soak]]}}
repeat: {{min: {runs}, max: {runs}, metrics: [throughput]}}
"""
HOW = (
    "A campaign over loopback (write to trunc, cubic, both sides on one CPU: what a meter takes is"
    f" taken from the bytes there), {RUNS} runs of 1 s with rusage alone, with every meter that"
    " runs here but soak, and with soak, in random complete blocks."
)


def metered() -> list[str]:
    """Meters that run here and are asked for, without soak."""
    meters = local().meters.items()
    return [n for n, m in meters if not m.has("always") and not m.row.why and n != "soak"]


def measure(runs: int = RUNS) -> Part:
    """The part."""
    names = metered()
    with tempfile.TemporaryDirectory() as name:
        text = CAMPAIGN.format(runs=runs, all=f"[{', '.join(names)}]")
        results = command.run(text, Path(name))
    equivalent = comparisons.Budget(
        f"within {MARGIN:.0%}",
        lambda _, low, high: low > 1 - MARGIN and high < 1 + MARGIN,
    )
    rows = comparisons.rows(
        results,
        "meters",
        "[rusage]",
        "throughput",
        lambda levels: f"throughput with {levels['meters']}",
        equivalent,
    )
    told = (replace(row, budget="", holds=None) if "soak" in row.what else row for row in rows)
    return Part("What meters cost", HOW, tuple(told))
