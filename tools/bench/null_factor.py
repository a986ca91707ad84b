"""Campaigns over loopback whose factor changes nothing: how often a level is called better or
worse.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.bench import command
from tools.bench.questions import Count
from tools.bench.table import Part, Row
from tools.bench.truth import binomial, percent

CAMPAIGNS = 40
RARE = 0.01
TEXT = """\
netbench: 1
name: null-factor
verify: off
transfer: {{send: write, receive: read, duration: {duration}, pin: apart, sample: none}}
sweep: {{warmup: [20ms, 20001us]}}
compare: {{factor: warmup, baseline: 20ms}}
repeat: {{min: 10, max: 30}}
order: {{seed: {seed}}}
"""
HOW = (
    "{campaigns} campaigns over loopback, one after the other, each with its own order: 10 to 30"
    " runs of {duration} of each of two levels that differ by 1 µs of warm-up. A verdict (better or"
    " worse, in throughput) is a false one. It holds unless there are more than chance gives once"
    " in 100 times at 5%."
)


def measure(campaigns: int = CAMPAIGNS, duration: str = "50ms") -> Part:
    """One row."""
    total, seconds, blocks = Count(0, 0), 0.0, 0
    for seed in range(campaigns):
        with tempfile.TemporaryDirectory() as folder:
            ran = command.run(TEXT.format(duration=duration, seed=seed), Path(folder))
            (found,) = ran.results.source.comparisons["throughput"]
        total += Count(found.verdict in ("better", "worse"), 1)
        seconds, blocks = seconds + ran.seconds, blocks + found.n
    return Part(
        "A factor that changes nothing",
        HOW.format(campaigns=campaigns, duration=duration),
        (row(total, seconds, blocks),),
    )


def row(count: Count, seconds: float, blocks: int) -> Row:
    """The row, with the number of verdicts, and how much was run for it."""
    low, high = binomial(count)
    return Row(
        "false verdicts of throughput",
        f"{count.hits} of {count.looks}",
        "",
        f"{percent(low)} to {percent(high)}; {seconds:.0f} s, {blocks} blocks",
        f"at most {most(count.looks)} of {count.looks}",
        count.hits <= most(count.looks),
    )


def most(looks: int, share: float = 0.05) -> int:
    """The most that are not rare when each has this chance."""
    return next(
        k for k in range(looks + 1) if binomial(Count(k + 1, looks), 1 - 2 * RARE)[0] > share
    )
