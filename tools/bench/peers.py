"""netbench beside iperf3 in the same blocks: campaigns/peers.yaml."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from netbench import api, campaign
from tools.bench import comparisons
from tools.bench.table import Part

CAMPAIGN = Path(__file__).resolve().parents[2] / "campaigns" / "peers.yaml"
BUDGETS = {
    "throughput": comparisons.low_at_least(0.98),
    "system_demand": comparisons.Budget(
        "upper bound at most 1.02", lambda ratio, low, high: high <= 1.02
    ),
}
HOW = (
    "`campaigns/peers.yaml`: {runs} runs in {blocks} random complete blocks, chunks of 128K, both"
    " sides pinned apart, cubic, windows of a second after a second of warm-up. Ratios are of"
    " paired runs in the same block, their intervals widened for looking after every block and"
    " corrected over the family (Holm). CPU is that of the whole machine (procstat) for 1024 bytes."
    " Peer: {version}."
)
NOTES = (
    (
        "`iperf3 -Z` sends the first 128K of an unlinked file of its own with sendfile(2), over and"
        " over (seen with strace); netbench's sendfile sends such a file too (`source: {files: 1,"
        " size: 128K}`), so both sides touch the same amount of memory."
    ),
    (
        "iperf3 before 3.16 serves all streams in one thread, as netbench does for streams that are"
        " pinned to one CPU."
    ),
)


def measure() -> Part:
    """Run the campaign until the ratios are known to 1.5%, or 60 blocks."""
    argv = ["iperf3", "--version"]
    version = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        results = api.load(api.start(campaign.load(CAMPAIGN), Path(folder)).path)
        rows = [
            row
            for metric, budget in BUDGETS.items()
            for row in comparisons.rows(results, "tool", "iperf3", metric, _name(metric), budget)
        ]
        how = HOW.format(
            runs=len(results.runs),
            blocks=int(results.runs["block"].max()) + 1,
            version=version.split("(")[0].strip(),
        )
    return Part("Beside iperf3", how, tuple(rows), NOTES)


def _name(metric: str) -> comparisons.Naming:
    return lambda levels: f"{levels['send']}, streams: {levels['streams']}: {metric}"
