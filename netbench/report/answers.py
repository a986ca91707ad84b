"""Which metrics answer a question: throughput says nothing where a rate fixes it, CPU busy little
where throughput differs.
"""

from __future__ import annotations

from collections.abc import Collection

from netbench.read import offered


def answering(metrics: Collection[str], asked: Collection[str], rate: str) -> list[str]:
    """The metrics whose comparisons answer the question. CPU busy says little where throughput
    differs: it is left to its table, unless it was asked for or a `rate` fixes all throughput; then
    demand would say the same again.
    """
    fixed = bool(rate) and offered.METRIC not in metrics
    return [
        metric
        for metric in metrics
        if metric in asked or not metric.partition(".")[0].endswith("_demand" if fixed else "_cpu")
    ]


def repeats_cpu(metric: str, metrics: Collection[str], asked: Collection[str], rate: str) -> bool:
    """Whether a demand says what CPU says: a rate fixes all throughput. Not what was asked for."""
    fixed = bool(rate) and offered.METRIC not in metrics
    return fixed and "_demand" in metric and metric not in asked
