"""Requests beside sockperf in the same blocks: the campaign of docs/how-to/tools-of-your-own.md."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from netbench import api, campaign
from tools.bench import comparisons
from tools.bench.table import Part

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "tools-of-your-own.md"
HOW = (
    "The campaign of docs/how-to/tools-of-your-own.md: {runs} runs in {blocks} random complete"
    " blocks, 14 bytes each way over one connection, both ends in recv(2) on one CPU, windows of"
    " a second. Latencies are of round trips."
)
BUDGET = comparisons.Budget("upper bound at most 1.02", lambda ratio, low, high: high <= 1.02)


def measure() -> Part:
    """60 blocks. Errors: ValueError where the page has no such campaign."""
    pages = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    text = next(page for page in pages if "name: sockperf" in page)
    text = text.replace("min: 10, max: 10", "min: 60, max: 60")
    text = text.replace("duration: 1s", "duration: 1s, pin: same, congestion: cubic")
    with tempfile.TemporaryDirectory() as folder:
        results = api.load(api.start(campaign.parse(text, "sockperf.yaml"), Path(folder)).path)
        rows = [
            row
            for metric in ("latency", "p50")
            for row in comparisons.rows(results, "tool", "sockperf", metric, _named(metric), BUDGET)
        ]
        blocks = int(results.runs["block"].max()) + 1
        how = HOW.format(runs=len(results.runs), blocks=blocks)
    return Part("Requests beside sockperf", how, tuple(rows))


def _named(metric: str) -> comparisons.Naming:
    return lambda _: metric
