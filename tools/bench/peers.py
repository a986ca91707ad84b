"""netbench beside iperf3 in the same blocks: campaigns/peers.yaml."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from netbench import api, campaign
from netbench.results import Results
from tools.bench.table import Part, Row

CAMPAIGN = Path(__file__).resolve().parents[2] / "campaigns" / "peers.yaml"
WANTED = {
    "throughput": ("throughput", "Gb/s", "lower bound at least 0.98"),
    "system_demand": ("CPU", "µs/KB", "upper bound at most 1.02"),
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
    with tempfile.TemporaryDirectory() as folder:
        conclusion = api.start(campaign.load(CAMPAIGN), Path(folder))
        results = api.load(conclusion.path)
        tables = [results.compare("tool", "iperf3", metric) for metric in WANTED]
        rows = [_row(record, results) for table in tables for record in table.to_dict("records")]
        how = HOW.format(
            runs=len(results.runs), blocks=int(results.runs["block"].max()) + 1, version=_version()
        )
    return Part("Beside iperf3", how, tuple(rows), NOTES)


def _version() -> str:
    return (
        subprocess.run(["iperf3", "--version"], check=True, capture_output=True, text=True)
        .stdout.split("(")[0]
        .strip()
    )


def _row(record: dict[object, object], results: Results) -> Row:
    metric = str(record["metric"])
    what, unit, budget = WANTED[metric]
    low, high = float(str(record["low"])), float(str(record["high"]))
    cells = results.cells
    mine = cells[
        (cells["metric"] == metric)
        & (cells["send"] == record["send"])
        & (cells["streams"] == record["streams"])
    ]
    mean = {str(row["tool"]): f"{row['mean']:.4g} {unit}" for row in mine.to_dict("records")}
    return Row(
        f"{record['send']}, {record['streams']} stream{'' if record['streams'] == '1' else 's'}:"
        f" {what}",
        mean.get("none", "missing"),
        mean.get("iperf3", "missing"),
        f"{float(str(record['ratio'])):.3f} ({low:.3f} to {high:.3f}), n = {record['n']}",
        budget,
        low >= 0.98 if metric == "throughput" else high <= 1.02,
    )
