"""64 streams on two threads beside two streams on two threads, in the same blocks."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.bench import command
from tools.bench.table import Part, Row

LEAST = 0.95
CAMPAIGN = """\
netbench: 1
name: shared-threads
verify: off
transfer: {duration: 500ms, warmup: 500ms, chunk: 64K, congestion: cubic, threads: 2, sample: none}
sweep: {send: [write, sendfile, uring], streams: [2, 64]}
repeat: {min: 12, max: 12, metrics: [throughput]}
"""
HOW = (
    "A campaign over loopback, 12 runs of 500 ms of each cell in random complete blocks: two"
    " threads a side serve 2 or 64 streams. Ratios are of paired runs in the same block, corrected"
    " over the family (Holm)."
)


def measure() -> Part:
    """A row a send method."""
    with tempfile.TemporaryDirectory() as folder:
        results = command.run(CAMPAIGN, Path(folder)).results
        found = results.compare("streams", "2", "throughput").to_dict("records")
        cells = results.cells[results.cells["metric"] == "throughput"]
        means = cells.set_index(["send", "streams"])["mean"].to_dict()
    return Part("Streams that share threads", HOW, tuple(_row(each, means) for each in found))


def _row(found: dict[object, object], means: dict[object, object]) -> Row:
    send = str(found["send"])
    ratio, low, high = (float(str(found[key])) for key in ("ratio", "low", "high"))
    ours, peer = (float(str(means[send, streams])) for streams in ("64", "2"))
    return Row(
        f"{send}: 64 streams on 2 threads",
        f"{ours:.4g} Gb/s",
        f"2 streams: {peer:.4g} Gb/s",
        f"{ratio:.3f} ({low:.3f} to {high:.3f}), n = {found['n']}",
        f"at least {LEAST}",
        ratio >= LEAST,
    )
