"""uring at its best depth beside write, in the same blocks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import netbench
from tools.bench import command, comparisons
from tools.bench.table import Part, Row

LEAST = 0.95
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
TRANSFER = """\
netbench: 1
verify: off
meters: [rusage, procstat]
"""
DEPTH = """\
name: uring-depth
transfer:
  {{send: uring, receive: read, duration: {duration}, warmup: {duration}, chunk: 128K,
   receive_chunk: 128K, congestion: cubic, pin: apart, sample: none}}
sweep: {{queue_depth: [{depths}]}}
repeat: {{min: {runs}, max: {runs}, metrics: [throughput]}}
"""
BESIDE = """\
name: uring-beside-write
transfer:
  {{queue_depth: {depth}, receive: read, duration: {duration}, warmup: {duration}, chunk: 128K,
   receive_chunk: 128K, congestion: cubic, pin: apart, sample: none}}
sweep: {{send: [write, uring]}}
repeat: {{min: {pairs}, max: {pairs}, metrics: [throughput]}}
"""
HOW = (
    "Two campaigns over loopback: 1 stream, chunks of 128K, cubic, both sides pinned apart, runs of"
    " {duration} after as much warm-up, in random complete blocks. The first finds the depth of"
    " the greatest mean throughput ({runs} runs of each of {depths}); the second, with runs of its"
    " own, compares uring at that depth with write ({pairs} pairs). Ratios are of paired runs in"
    " the same block."
)


def measure(runs: int = 8, pairs: int = 30, duration: str = "500ms") -> Part:
    """The depths, and the comparison."""
    asked = {
        "runs": runs,
        "pairs": pairs,
        "duration": duration,
        "depths": ", ".join(map(str, DEPTHS)),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        means = _means((TRANSFER + DEPTH).format_map(asked), folder)
        best = max(means, key=lambda depth: means[depth])
        results = command.run(
            (TRANSFER + BESIDE).format_map(asked | {"depth": best}), folder
        ).results
        beside = [
            *_beside(results, "throughput", best, comparisons.low_at_least(LEAST)),
            *_beside(results, "system_demand", best, None),
        ]
    rows = [
        Row(f"uring, queue_depth {depth}", f"{mean:.4g} Gb/s", "", "", "", None)
        for depth, mean in means.items()
    ]
    return Part("uring beside write", HOW.format_map(asked), (*beside, *rows))


def _means(text: str, folder: Path) -> dict[str, float]:
    """Mean throughput by depth, in Gb/s."""
    cells = command.run(text, folder).results.cells
    cells = cells[cells["metric"] == "throughput"]
    return {str(row["queue_depth"]): float(row["mean"]) for row in cells.to_dict("records")}


def _beside(
    results: netbench.Results, metric: str, depth: str, budget: comparisons.Budget | None
) -> tuple[Row, ...]:
    def what(_: comparisons.Levels) -> str:
        return f"uring, queue_depth {depth}: {metric}"

    return comparisons.rows(results, "send", "write", metric, what, budget)
