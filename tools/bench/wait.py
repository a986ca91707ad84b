"""The ways of waiting for a connection, in the same blocks."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.bench import command, comparisons
from tools.bench.table import Part

DEFAULT = "block"
METRICS = ("throughput", "system_demand")
CAMPAIGN = """\
netbench: 1
name: wait
verify: off
transfer:
  {{send: write, receive: read, duration: {duration}, warmup: {duration}, chunk: 128K,
   receive_chunk: 128K, congestion: cubic, pin: apart, sample: none}}
sweep: {{wait: [block, poll, spin]}}
repeat: {{min: {runs}, max: {runs}, metrics: [throughput, system_demand]}}
meters: [rusage, procstat]
"""
HOW = (
    "A campaign over loopback, {runs} runs of {duration} of each way in random complete blocks:"
    " write to read, 1 stream, chunks of 128K, cubic, pinned apart. Both sides wait in the call"
    " itself (block), in poll(2) before each call (poll), or not: a call that would wait is made"
    " again (spin). Ratios are of paired runs in the same block, corrected over the family (Holm);"
    " system_demand is the whole machine's CPU time for 1024 bytes (procstat). `block` is the"
    " default of the option."
)


def measure(runs: int = 30, duration: str = "500ms") -> Part:
    """A row for each other way and metric."""
    asked = {"runs": runs, "duration": duration}
    with tempfile.TemporaryDirectory() as folder:
        results = command.run(CAMPAIGN.format_map(asked), Path(folder)).results
        rows = [
            row
            for metric in METRICS
            for row in comparisons.rows(results, "wait", DEFAULT, metric, _name(metric))
        ]
    return Part("Ways of waiting", HOW.format_map(asked), tuple(rows))


def _name(metric: str) -> comparisons.Naming:
    return lambda levels: f"write, wait {levels['wait']}: {metric}"
