"""64 streams on two threads beside two streams on two threads, of netbench and of a loop that was
written by hand, in the same blocks.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from netbench.engine.build_native import CFLAGS, compiler
from tools.bench import command, comparisons
from tools.bench.table import Part

LEAST = 0.95
LOOP = Path(__file__).with_name("streams.c")
CAMPAIGN = """\
netbench: 1
name: shared-threads
verify: off
tools:
  hand:
    client: [{program}, send, "{{address}}", "{{port}}", "{{streams}}", "2", "{{chunk}}"]
    server: [{program}, receive, "{{port}}", "{{streams}}", "2", "{{chunk}}", "{{seconds}}"]
    captures: {{throughput: '(?P<bytes>\\d+) bytes in (?P<seconds>[\\d.]+) s'}}
transfer: {{duration: {duration}, warmup: {duration}, chunk: 64K, congestion: cubic, sample: none}}
sweep: {{send: [write, sendfile, uring], streams: [2, 64], tool: [none, hand]}}
include: [{{tool: none, threads: 2}}]
exclude: [{{tool: hand, send: sendfile}}, {{tool: hand, send: uring}}]
repeat: {{min: {runs}, max: {runs}, metrics: [throughput]}}
"""
HOW = (
    "A campaign over loopback, {runs} runs of {duration} of each cell in random complete blocks:"
    " two threads a side serve 2 or 64 streams. Ratios are of paired runs in the same block,"
    " corrected over the family (Holm). The peer of the last rows is `tools/bench/streams.c`, an"
    " epoll loop that was written by hand, in which read(2) and write(2) move whole chunks as long"
    " as they come."
)
NOTES = (
    (
        "Where the loop by hand misses the budget as well, the kernel's queues are the limit: 64"
        " streams hold up to 64 send and receive buffers of data, and what has left the processor's"
        " cache before it is read costs several times as much to copy (`ss -tm` shows the queues)."
    ),
)


def measure(runs: int = 12, duration: str = "500ms") -> Part:
    """A row a sender for 64 streams beside 2, and two for netbench beside the loop by hand."""
    with tempfile.TemporaryDirectory() as folder:
        asked = {"runs": runs, "duration": duration, "program": _build(Path(folder))}
        results = command.run(CAMPAIGN.format_map(asked), Path(folder)).results
        beside_two = comparisons.rows(
            results,
            "streams",
            "2",
            "throughput",
            lambda levels: f"{_who(levels)}: {levels['streams']} streams on 2 threads",
            comparisons.ratio_at_least(LEAST),
        )
        beside_hand = comparisons.rows(
            results,
            "tool",
            "hand",
            "throughput",
            lambda levels: (
                f"{levels['send']}: {levels['streams']} streams, beside the loop by hand"
            ),
            comparisons.ratio_at_least(LEAST),
        )
    return Part(
        "Streams that share threads", HOW.format_map(asked), beside_two + beside_hand, NOTES
    )


def _build(folder: Path) -> Path:
    """Compile the loop. Errors: CalledProcessError."""
    target = folder / "streams"
    subprocess.run([*compiler(), *CFLAGS, "-static", str(LOOP), "-o", str(target)], check=True)
    return target


def _who(levels: comparisons.Levels) -> str:
    return "the loop by hand" if levels["tool"] == "hand" else levels["send"]
