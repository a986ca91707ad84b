"""The title of a metric in a report. Where the sides share a kernel, that of one side says what it
is.
"""

from __future__ import annotations

from netbench.read.metrics import describe
from netbench.read.result import Result
from netbench.stats.comparison import Comparison

ALONE = "its process alone"


def is_of_process(metric: str, *results: Result) -> bool:
    """Whether a metric of one side counts its process alone (rusage), without what the kernel does
    for it in softirq: the sides share a kernel, and no meter of the kernel tells them apart.
    """
    together = all(result.shared and all(result.shared.values()) for result in results)
    one_side = metric.startswith(("sender_", "receiver_"))
    return together and one_side and metric.endswith(("_cpu", "_demand"))


def title(metric: str, *results: Result) -> str:
    """`sender CPU`, or `sender CPU (its process alone)`."""
    name = (results[0].describe(metric) if results else describe(metric)).title
    return f"{name} ({ALONE})" if is_of_process(metric, *results) else name


def sentence(c: Comparison, *results: Result) -> str:
    """A comparison in words with its verdict, and what the metric is where its name does not say
    it.
    """
    said = [c.verdict] if c.verdict in ("better", "worse") else []
    said += [f"CPU of {ALONE}"] if is_of_process(c.metric, *results) else []
    return f"{c.sentence} ({'; '.join(said)})" if said else c.sentence
